#include "BlockSums.h"
#include <algorithm>
#include <cmath>

namespace gemmc::run {

BlockSums::BlockSums(const Reference &reference)
    : reference(reference), blocks((reference.problem().args.n + width - 1) / width), signs(reference.problem().args.n),
      wanted(reference.problem().rows() * blocks), allowed(wanted.size()) {
  Random random(reference.problem().options.seed + 77);
  for (double &sign : signs)
    sign = random.next() & 1 ? 1 : -1;
  if (reference.problem().readsInputs())
    product();
  if (reference.problem().readsC())
    addC();
}

void BlockSums::product() {
  const LaunchArgs &args = reference.problem().args;
  const int64_t depth = reference.depth(), rows = reference.problem().rows();
  std::vector<double> sums(reference.depthOfAll() * blocks), sizes(sums.size()); // of B's rows
  parallelFor(reference.depthOfAll(), reference.threads(), [&](int64_t k) {
    llvm::ArrayRef<double> row = reference.bRow(k);
    for (int64_t j = 0; j < args.n; ++j) {
      sums[k * blocks + j / width] += signs[j] * row[j];
      sizes[k * blocks + j / width] += std::fabs(row[j]);
    }
  });
  constexpr int64_t together = 4; // rows that read `sums` once
  const double alpha = args.alpha, factor = reference.accumulationFactor() + 2 * reference.epilogueFactor();
  parallelFor((rows + together - 1) / together, reference.threads(), [&](int64_t group) {
    const int64_t first = group * together, end = std::min(first + together, rows);
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t row = first; row < end; ++row) {
        const double left = alpha * reference.aRow(row)[k], size = std::fabs(left) * factor;
        const int64_t ofB = (reference.depthBefore(row) + k) * blocks;
        const double *sum = &sums[ofB], *bound = &sizes[ofB];
        double *to = &wanted[row * blocks], *most = &allowed[row * blocks];
        for (int64_t block = 0; block < blocks; ++block) {
          to[block] += left * sum[block];
          most[block] += size * bound[block];
        }
      }
  });
}

void BlockSums::addC() {
  const GemmProblem &problem = reference.problem();
  const double beta = problem.args.beta, rounding = 2 * reference.epilogueFactor();
  const Decoder decoder(problem.c.type);
  parallelFor(problem.rows(), reference.threads(), [&](int64_t row) {
    for (int64_t j = 0; j < problem.args.n; ++j) {
      const double added = beta * decoder(problem.c.bits(problem.rowOfC(row), j));
      wanted[row * blocks + j / width] += signs[j] * added;
      allowed[row * blocks + j / width] += rounding * std::fabs(added);
    }
  });
}

bool BlockSums::hold(const HostMatrix &d, int64_t &row) const {
  const FloatFormat format = *formatOf(d.type);
  const double rounding = std::ldexp(1.0, 1 - format.precision());
  const double smallest = std::ldexp(1.0, format.minExponent() - format.fractionBits);
  const Decoder decoder(d.type);
  std::vector<char> wrong(d.rows);
  parallelFor(d.rows, reference.threads(), [&](int64_t i) {
    for (int64_t block = 0; block < blocks; ++block) {
      double difference = -wanted[i * blocks + block], most = allowed[i * blocks + block];
      for (int64_t j = block * width, end = std::min(j + width, d.cols); j < end; ++j) {
        const double got = decoder(d.bits(i, j));
        difference += signs[j] * got;
        most += rounding * std::fabs(got) + smallest;
      }
      wrong[i] |= !(std::fabs(difference) <= most);
    }
  });
  row = llvm::find(wrong, 1) - wrong.begin();
  return row == d.rows;
}

} // namespace gemmc::run
