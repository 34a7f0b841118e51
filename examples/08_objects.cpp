// examples/08_objects.cpp: data of the program's own types, which changes its size and travels between ranks.
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <tandem/tandem.hpp>

struct Count {
  std::map<std::string, int> words;
  std::size_t letters = 0;
};

// How it travels: the parts one after the other. They are of types that Tandem knows.
template <>
struct tandem::Serialize<Count> {
  static void write(const Count& count, ByteWriter& out) {
    out.write(count.words);
    out.write(count.letters);
  }
  static Count read(ByteReader& in) {
    Count count;
    count.words = in.read<std::map<std::string, int>>();
    count.letters = in.read<std::size_t>();
    return count;
  }
};

int main(int argc, char** argv) {
  tandem::Runtime rt(argc, argv);
  const std::vector<std::string> lines{"the cat sees the dog", "the dog sees nothing", "a cat", "the end"};

  // Allocated by Tandem on the rank of each line; nothing is in them until a task writes them.
  std::vector<tandem::Data<tandem::Object<Count>>> counts;
  for (unsigned i = 0; i < lines.size(); ++i) counts.push_back(rt.object<Count>("count", {.owner = i % rt.size()}));

  tandem::Codelet count("count", [](const std::string& line, Count& to) {
    std::istringstream in(line);
    for (std::string word; in >> word; to.letters += word.size()) ++to.words[word];
  });
  tandem::Codelet merge("merge", [](const Count& from, Count& to) {
    for (const auto& [word, times] : from.words) to.words[word] += times;
    to.letters += from.letters;
  });
  for (unsigned i = 0; i < lines.size(); ++i) rt.submit(count, lines[i], write(counts[i]));
  for (unsigned i = 1; i < lines.size(); ++i) rt.submit(merge, read(counts[i]), read_write(counts[0]));

  auto all = rt.acquire(read(counts[0]));
  if (rt.rank() == 0)
    std::printf("%zu words, %zu letters, 'the' %d times\n", all->words.size(), all->letters, all->words.at("the"));
}
