// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/batch_engine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "lathe/runtime/thread_pool.h"
#include "runtime/fair_queue.h"
#include "runtime/language_program.h"
#include "runtime/slot_choice.h"
#include "runtime/text_in_progress.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;

// A pass over a prompt reads all weights: it takes about as long for one token as for so many.
constexpr int64_t kLeastPass = 8;

struct Job {
  uint64_t id = 0;
  TextRequest request;
  std::unique_ptr<TextInProgress> text;
  int64_t slot = -1;
  int64_t reused = 0;
  size_t read = 0;         // tokens of the prompt that are in the cache
  bool isRunning = false;  // as BatchEngineCounts counts it
};
using JobPtr = std::unique_ptr<Job>;

Error outOfMemory() {
  return Error(ErrorCode::OutOfMemory, "no memory for the next token; run fewer texts at once");
}

}  // namespace

struct BatchEngine::Impl {
  std::unique_ptr<KvSlots> slots;
  std::optional<Tokenizer> tokenizer;
  BatchEngineOptions options;

  // Of the thread that steps.
  JobPtr reading;               // whose prompt is read
  std::vector<JobPtr> running;  // in the order of their slots
  std::optional<SlotChoice> choice;

  // Of all threads.
  mutable std::mutex mutex;
  std::condition_variable changed;
  FairQueue<JobPtr> waiting;
  std::set<uint64_t> cancelled;
  uint64_t lastId = 0;
  bool stopping = false;
  Clock::time_point deadline;
  BatchEngineCounts counts;

  template <class Change>
  void count(Change change) {
    std::lock_guard lock(mutex);
    change(counts);
  }

  // Puts the job into a slot with as much of its prompt as the caches hold; false where there is no
  // room for the text yet.
  bool place(Job& job, int64_t slot) {
    const auto [from, held] = choice->beginning(job.request.prompt, slot);
    if (!slots->begin(slot, from, held, job.text->positions())) return false;
    job.slot = slot;
    job.reused = held;
    job.read = size_t(held);
    choice->noteUse(slot);
    return true;
  }

  // -1: none is free.
  int64_t chooseSlot(std::span<const int> prompt) const {
    std::vector<int64_t> taken;
    for (const JobPtr& job : running) taken.push_back(job->slot);
    return choice->choose(prompt, taken, reading ? reading->slot : -1);
  }

  // With the mutex. Whoever asks at any time finds each text that was taken under one name: it
  // waits, runs or has ended in one way.
  void countEnd(Job& job, bool failed) {
    const TextGeneration& text = job.text->result();
    if (failed)
      ++counts.failed;
    else if (text.stopped == StopReason::Cancelled)
      ++counts.cancelled;
    else
      ++counts.finished;
    counts.generatedTokens += int64_t(text.tokens.size());
    counts.running -= std::exchange(job.isRunning, false);
    cancelled.erase(job.id);
  }

  static void tellEnd(Job& job, std::optional<Error> error = std::nullopt) {
    if (!job.request.onEnd) return;
    TextEnd end;
    end.promptTokens = int64_t(job.request.prompt.size());
    end.reusedTokens = job.reused;
    end.text = std::move(job.text->result());
    end.error = std::move(error);
    job.request.onEnd(std::move(end));
  }

  void end(JobPtr job, std::optional<Error> error = std::nullopt) {
    if (job->slot >= 0) slots->end(job->slot);
    count([&](BatchEngineCounts&) { countEnd(*job, error.has_value()); });
    tellEnd(*job, std::move(error));
  }

  // Takes a token that was drawn; true: the text goes on. One that ends is told.
  bool take(JobPtr& job, const std::function<int()>& drawn, std::span<const float> logits) {
    try {
      job->text->take(drawn(), logits);
    } catch (const Error& e) {
      end(std::move(job), e);
      return false;
    } catch (const std::bad_alloc&) {
      end(std::move(job), outOfMemory());
      return false;
    }
    if (!job->text->ended()) return true;
    end(std::move(job));
    return false;
  }

  void endCancelled() {
    std::vector<JobPtr> ended;
    {
      std::lock_guard lock(mutex);
      const bool all = stopping && Clock::now() >= deadline;
      if (!all && cancelled.empty()) return;
      auto wanted = [&](const JobPtr& job) { return all || cancelled.contains(job->id); };
      ended = waiting.extract(wanted);
      if (reading && wanted(reading)) ended.push_back(std::move(reading));
      for (JobPtr& job : running)
        if (wanted(job)) ended.push_back(std::move(job));
      std::erase(running, nullptr);
      for (JobPtr& job : ended) {
        job->text->cancel();
        countEnd(*job, false);
      }
      cancelled.clear();  // others have ended
    }
    for (JobPtr& job : ended) {
      if (job->slot >= 0) slots->end(job->slot);
      tellEnd(*job);
    }
  }

  // The next one who waits, once no prompt is read, a slot is free and has room for the text. Who
  // needs much room is not overtaken by those who need little. One whose slot cannot begin ends
  // with the error: in front of the queue it would fail for ever.
  void admit() {
    while (!reading && int64_t(running.size()) < slots->slots()) {
      Job* next = nullptr;
      {
        std::lock_guard lock(mutex);
        if (waiting.empty()) return;
        next = waiting.front().get();  // it stays in front: only this thread takes some out
      }
      std::optional<Error> error;
      try {
        if (!place(*next, chooseSlot(next->request.prompt))) return;
      } catch (const Error& e) {
        error = e;
      } catch (const std::bad_alloc&) {
        error = outOfMemory();
      }
      JobPtr job;
      {
        std::lock_guard lock(mutex);
        job = waiting.pop();
        job->isRunning = true;
        ++counts.running;
      }
      if (error)
        end(std::move(job), std::move(error));
      else
        reading = std::move(job);
    }
  }

  // One chunk of a prompt, and whole short prompts as long as there is time for them; true: one was
  // read. A prompt that does not fit has a chunk of its own the next time: short passes are slow.
  bool readPrompts() {
    bool any = false;
    for (int64_t left = options.chunkWhileRunning; left > 0; any = true) {
      admit();
      noteBlocks();
      if (!reading) break;
      const auto rest = int64_t(reading->request.prompt.size() - reading->read);
      if (any && rest > left) break;
      left -= std::max(kLeastPass, readPrompt());
    }
    return any;
  }

  // Returns the tokens that were read.
  int64_t readPrompt() {
    const std::span<const int> rest = std::span(reading->request.prompt).subspan(reading->read);
    const int64_t most = running.empty() ? slots->maxChunk()
                                         : std::min(options.chunkWhileRunning, slots->maxChunk());
    const size_t size = std::min(rest.size(), size_t(most));
    const std::span<const float> logits = slots->prefill(reading->slot, rest.first(size));
    reading->read += size;
    if (reading->read < reading->request.prompt.size()) return int64_t(size);
    JobPtr job = std::move(reading);
    count([&](BatchEngineCounts& c) {
      c.promptTokens += int64_t(job->request.prompt.size());
      c.reusedTokens += job->reused;
    });
    TextInProgress& text = *job->text;
    if (!take(job, [&] { return text.draw(text.permitted(logits)); }, logits)) return int64_t(size);
    const auto place = std::ranges::upper_bound(running, job->slot, {}, &Job::slot);
    running.insert(place, std::move(job));
    return int64_t(size);
  }

  void decode() {
    std::vector<int64_t> rows;
    std::vector<int> ids;
    for (const JobPtr& job : running) {
      rows.push_back(job->slot);
      ids.push_back(job->text->last());
    }
    const std::span<const float> logits = slots->next(rows, ids);
    count([&](BatchEngineCounts& c) {
      ++c.steps;
      c.stepTexts += int64_t(rows.size());
    });
    const size_t vocab = logits.size() / rows.size();
    std::vector<std::span<const float>> permitted;
    for (size_t i = 0; i < rows.size(); ++i)
      permitted.push_back(running[i]->text->permitted(logits.subspan(i * vocab, vocab)));
    // Draws of a large vocabulary take as long as a layer; they do not know of each other.
    std::vector<std::exception_ptr> mistakes(rows.size());
    ThreadPool::global().run(int64_t(rows.size()), [&](int64_t i, int) {
      try {
        ids[size_t(i)] = running[size_t(i)]->text->draw(permitted[size_t(i)]);
      } catch (...) {
        mistakes[size_t(i)] = std::current_exception();
      }
    });
    for (size_t i = 0; i < rows.size(); ++i) {
      choice->noteUse(rows[i]);
      auto drawn = [&] {
        if (mistakes[i]) std::rethrow_exception(mistakes[i]);
        return ids[i];
      };
      take(running[i], drawn, logits.subspan(i * vocab, vocab));
    }
    std::erase(running, nullptr);
  }

  // The model itself failed: nothing that its caches hold can be relied on.
  void failAll(const Error& error) {
    std::vector<JobPtr> ended = std::move(running);
    running.clear();
    if (reading) ended.push_back(std::move(reading));
    for (int64_t slot = 0; slot < slots->slots(); ++slot) slots->clear(slot);
    for (JobPtr& job : ended)
      if (job) end(std::move(job), error);
  }

  void noteBlocks() {
    std::lock_guard lock(mutex);
    counts.blocks = slots->blocks();
  }
};

BatchEngine::BatchEngine(std::unique_ptr<KvSlots> slots, std::optional<Tokenizer> tokenizer,
                         const BatchEngineOptions& options)
    : impl_(std::make_unique<Impl>()) {
  if (!slots) throw Error(ErrorCode::InvalidArgument, "BatchEngine: expected slots, got none");
  for (int64_t number : {options.maxWaiting, options.chunkWhileRunning})
    if (number < 1)
      throw Error(ErrorCode::InvalidArgument,
                  "BatchEngine: expected options of at least 1, got " + std::to_string(number));
  impl_->choice.emplace(*slots);
  impl_->counts.slots = slots->slots();
  impl_->counts.blocks = slots->blocks();  // who asks before the first step sees them, too
  impl_->slots = std::move(slots);
  impl_->tokenizer = std::move(tokenizer);
  impl_->options = options;
}
BatchEngine::~BatchEngine() = default;

int64_t BatchEngine::maxPositions() const { return impl_->slots->positions(); }

std::optional<uint64_t> BatchEngine::submit(TextRequest request, Refusal* why) {
  Impl& e = *impl_;
  checkTextOptions(request.options, e.tokenizer.has_value());
  if (request.prompt.empty())
    throw Error(ErrorCode::InvalidArgument, "expected at least one token, got none");
  // Found later, it would end the texts of all.
  checkIds(request.prompt, e.slots->vocab());
  if (request.options.drafter || request.options.resume)
    throw Error(ErrorCode::InvalidArgument,
                "drafts and `resume` are for one text at a time, got them for an engine");
  auto job = std::make_unique<Job>();
  job->request = std::move(request);
  job->text = std::make_unique<TextInProgress>(e.tokenizer, job->request.options,
                                               job->request.prompt, maxPositions(), 0);
  const std::string owner[] = {job->request.client, job->request.user};
  std::lock_guard lock(e.mutex);
  const std::optional<size_t> crowded = e.waiting.crowded(owner, size_t(e.options.maxWaiting));
  if (e.stopping || crowded) {
    constexpr Refusal kByLevel[] = {Refusal::QueueFull, Refusal::ClientFull, Refusal::UserFull};
    if (why) *why = e.stopping ? Refusal::Stopping : kByLevel[*crowded];
    ++e.counts.refused;
    return std::nullopt;
  }
  ++e.counts.taken;
  const uint64_t id = job->id = ++e.lastId;
  e.waiting.push(owner, std::move(job));
  e.changed.notify_all();
  return id;
}

void BatchEngine::cancel(uint64_t id) {
  std::lock_guard lock(impl_->mutex);
  impl_->cancelled.insert(id);
  impl_->changed.notify_all();
}

bool BatchEngine::step() {
  Impl& e = *impl_;
  e.endCancelled();
  bool works = true;
  try {
    works = e.readPrompts() || !e.running.empty();
    if (!e.running.empty()) e.decode();
  } catch (const Error& error) {
    e.failAll(error);
    e.slots->throwIfEnded();
  } catch (const std::bad_alloc&) {
    e.failAll(outOfMemory());
  }
  e.noteBlocks();
  return works;
}

void BatchEngine::wait(double seconds) {
  Impl& e = *impl_;
  std::unique_lock lock(e.mutex);
  e.changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
    return e.stopping || !e.waiting.empty() || !e.cancelled.empty() || e.reading ||
           !e.running.empty();
  });
}

void BatchEngine::run() {
  Impl& e = *impl_;
  while (true) {
    if (step()) continue;
    {
      std::lock_guard lock(e.mutex);
      if (e.stopping && e.waiting.empty()) return;
    }
    wait(1);
  }
}

void BatchEngine::stop(double seconds) {
  Impl& e = *impl_;
  std::lock_guard lock(e.mutex);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(seconds));
  e.deadline = e.stopping ? std::min(e.deadline, deadline) : deadline;
  e.stopping = true;
  e.changed.notify_all();
}

BatchEngineCounts BatchEngine::counts() const {
  std::lock_guard lock(impl_->mutex);
  BatchEngineCounts counts = impl_->counts;
  counts.waiting = int64_t(impl_->waiting.size());
  return counts;
}

}  // namespace lathe
