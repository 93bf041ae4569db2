// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who waits, and whose turn it is.
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lathe {

/// Clients take turns; of one client's items the first comes first.
template <class Item>
class FairQueue {
 public:
  void push(const std::string& client, Item item) {
    std::deque<Item>& items = byClient_[client];
    if (items.empty()) turns_.push_back(client);
    items.push_back(std::move(item));
    ++size_;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// What pop() takes out. The queue is not empty.
  const Item& front() const { return byClient_.at(turns_.front()).front(); }
  /// Of the client whose turn it is. The queue is not empty.
  Item pop() {
    const std::string client = std::move(turns_.front());
    turns_.pop_front();
    std::deque<Item>& items = byClient_.at(client);
    Item item = std::move(items.front());
    items.pop_front();
    --size_;
    if (items.empty())
      byClient_.erase(client);
    else
      turns_.push_back(client);
    return item;
  }

  /// Takes out all that `wanted` holds for.
  template <class Wanted>
  std::vector<Item> extract(Wanted wanted) {
    std::vector<Item> out;
    for (auto& [client, items] : byClient_) {
      std::deque<Item> kept;
      for (Item& item : items) {
        const bool goes = wanted(item);
        (goes ? out.emplace_back() : kept.emplace_back()) = std::move(item);
      }
      items = std::move(kept);
    }
    std::erase_if(turns_, [&](const std::string& client) { return byClient_[client].empty(); });
    std::erase_if(byClient_, [](const auto& entry) { return entry.second.empty(); });
    size_ -= out.size();
    return out;
  }

 private:
  std::map<std::string, std::deque<Item>> byClient_;
  std::deque<std::string> turns_;
  size_t size_ = 0;
};

}  // namespace lathe
