// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who waits, whose turn it is, and how many of one's own may wait.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lathe {

/// An item's owner is a path of names, such as an address and one of its users. The names of each
/// level take turns; of one owner's items the first comes first.
template <class Item>
class FairQueue {
 public:
  using Path = std::span<const std::string>;

  void push(Path owner, Item item) {
    ++size_;
    if (owner.empty()) return items_.push_back(std::move(item));
    FairQueue& line = lines_[owner.front()];
    if (line.empty()) turns_.push_back(owner.front());
    line.push(owner.subspan(1), std::move(item));
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// What pop() takes out. The queue is not empty.
  const Item& front() const {
    return turns_.empty() ? items_.front() : lines_.at(turns_.front()).front();
  }
  /// Of the owner whose turn it is. The queue is not empty.
  Item pop() {
    --size_;
    if (turns_.empty()) {
      Item item = std::move(items_.front());
      items_.pop_front();
      return item;
    }
    const std::string name = std::move(turns_.front());
    turns_.pop_front();
    FairQueue& line = lines_.at(name);
    Item item = line.pop();
    if (line.empty())
      lines_.erase(name);
    else
      turns_.push_back(name);
    return item;
  }

  /// Whether one more item of `owner` is too much for a queue of `most`: nothing, or the number of
  /// names that have too many, 0 for all of them together. Each level may hold as many as places
  /// are free beside it, so that whoever comes next finds one: a single name half of the places,
  /// two a third each (dynamic thresholds, Choudhury and Hahne 1998, doi:10.1109/90.664262).
  std::optional<size_t> crowded(Path owner, size_t most) const {
    if (size_ >= most) return 0;
    size_t left = most - size_;
    const FairQueue* line = this;
    for (size_t level = 0; level < owner.size(); ++level) {
      const auto found = line->lines_.find(owner[level]);
      if (found == line->lines_.end()) return std::nullopt;
      line = &found->second;
      if (line->size_ >= left) return level + 1;
      left -= line->size_;
    }
    return std::nullopt;
  }

  /// Takes out all that `wanted` holds for.
  template <class Wanted>
  std::vector<Item> extract(Wanted wanted) {
    std::vector<Item> out;
    extract(wanted, out);
    return out;
  }

 private:
  template <class Wanted>
  void extract(Wanted& wanted, std::vector<Item>& out) {
    const size_t before = out.size();
    for (auto& [name, line] : lines_) line.extract(wanted, out);
    std::erase_if(turns_, [&](const std::string& name) { return lines_.at(name).empty(); });
    std::erase_if(lines_, [](const auto& entry) { return entry.second.empty(); });
    std::deque<Item> kept;
    for (Item& item : items_) {
      const bool goes = wanted(item);
      (goes ? out.emplace_back() : kept.emplace_back()) = std::move(item);
    }
    items_ = std::move(kept);
    size_ -= out.size() - before;
  }

  std::deque<Item> items_;  // of the owner whose path ends here
  std::map<std::string, FairQueue> lines_;
  std::deque<std::string> turns_;
  size_t size_ = 0;
};

}  // namespace lathe
