
-- The index of messages. A part of it has a list of messages for each owner, and one for all owners; a list finds the messages with a term.
--
-- A message with terms has a number, counted from 1. A list begins as a log: records, each with the terms of a message, in segments that
-- are searched as a whole. When there are many segments, the oldest ones are flushed: for each of their terms, the numbers are added to the
-- postings of the term. Many terms share a bucket, which is one string, so that a rare term takes only a few bytes. A client computes the
-- new buckets (`index/postings.rs`).
--
-- Lua hashes every byte of every string, also of those that Redis returns. So segments and buckets are short.
--
-- The first byte of a term is in 128 to 254, its four other bytes are below 128. In a log, 255 and five bytes with the number follow the
-- terms of a message. In a bucket, bytes below 128 follow a term. So a plain search for a term finds it nowhere else.
--
-- keys, after the common start: `:c` counters; `:d` the thread and position of each message, in blocks; `:h` the names of threads by their
-- numbers; `:b` for each incarnation the number of the thread, the indexed position and the first message number; `:l` the lists.

-- The maximum size of a segment of a log, in bytes. With Redis's overhead, it just fits a size class of the memory allocator.
local LOG_SEGMENT = 4000
-- The number of full segments of a log from which on the oldest ones are flushed, and how many of them at a time.
local LOG_SEGMENTS = 16
local FLUSHED_SEGMENTS = 3
-- The maximum size of a record. Longer ones are split.
local RECORD = 2000
-- The maximum number of terms that one call changes in postings.
local STEP_TERMS = 50
-- The number of messages in a block. A block just fits a size class.
local BLOCK = 500
-- The maximum number of blocks in one call.
local STEP_BLOCKS = 20

local EVERYONE = '\0\0\0\0\0\0\0\0'

-- Encodes a number below 2^35 in five bytes below 128, in the same order.
local function five(number)
  local rest, bytes = number, {}
  for i = 5, 1, -1 do
    bytes[i] = rest % 128
    rest = math.floor(rest / 128)
  end
  return string.char(unpack(bytes))
end

local function read_five(text, at)
  local a, b, c, d, e = string.byte(text, at, at + 4)
  return (((a * 128 + b) * 128 + c) * 128 + d) * 128 + e
end

-- Encodes a number in bytes below 128, six bits in each: the lowest ones first, and 64 added to all bytes but the last.
local function varint(number)
  if number < 64 then return string.char(number) end
  local text = ''
  while number >= 64 do
    text = text .. string.char(64 + number % 64)
    number = math.floor(number / 64)
  end
  return text .. string.char(number)
end

-- Returns the number at a place, and the place after it.
local function read_varint(text, at)
  local number, factor = 0, 1
  while true do
    local byte = string.byte(text, at)
    at = at + 1
    if byte < 64 then return number + byte * factor, at end
    number = number + (byte - 64) * factor
    factor = factor * 64
  end
end

-- Postings are the numbers of messages, the highest first; each number but the first is stored as its difference to the one before.

-- Adds a number to postings, or removes it. Returns the postings, and the change of their count.
local function change_postings(postings, number, is_wanted)
  local at, last = 1, nil
  local from, value, after = 1, nil, 1
  while at <= #postings do
    local difference
    difference, after = read_varint(postings, at)
    value = last and last - difference or difference
    if value <= number then break end
    last, at, value = value, after, nil
  end
  from = at
  local function relative(other) return varint(last and last - other or other) end
  if value == number then
    if is_wanted then return postings, 0 end
    local rest = ''
    if after <= #postings then
      local difference, next_at = read_varint(postings, after)
      rest = relative(number - difference) .. string.sub(postings, next_at)
    end
    return string.sub(postings, 1, from - 1) .. rest, -1
  end
  if not is_wanted then return postings, 0 end
  local rest = value and varint(number - value) .. string.sub(postings, after) or ''
  return string.sub(postings, 1, from - 1) .. relative(number) .. rest, 1
end

-- Reads a list: its newest log segment, the numbers of the oldest and of the newest one, the number of corrections, and the number of buckets
-- with the sum of their bytes.
local function open_list(base, name)
  local list = {key = base .. ':l', name = name, first = 1, last = 1, corrections = 0, buckets = 0, bytes = 0, tail = ''}
  local head = call('HGET', list.key, name)
  if head then
    list.first, list.last, list.corrections = read_five(head, 1), read_five(head, 6), read_five(head, 11)
    list.buckets, list.bytes, list.tail = read_five(head, 16), read_five(head, 21), string.sub(head, 26)
  end
  return list
end

local function save_list(list)
  local head = five(list.first) .. five(list.last) .. five(list.corrections) .. five(list.buckets) .. five(list.bytes)
  call('HSET', list.key, list.name, head .. list.tail)
end

local function log_field(list, number) return list.name .. 'l' .. five(number) end
local function bucket_field(list, number) return list.name .. 'b' .. five(number) end
local function postings_field(list, term, number) return list.name .. 'p' .. term .. five(number) end

local function log_segment(list, number)
  if number == list.last then return list.tail end
  return call('HGET', list.key, log_field(list, number)) or ''
end

local function set_log_segment(list, number, text)
  if number == list.last then list.tail = text else call('HSET', list.key, log_field(list, number), text) end
end

local function record_of(terms, number)
  return terms .. '\255' .. five(number)
end

local function append_record(list, terms, number)
  for i = 1, #terms, RECORD do
    local record = record_of(string.sub(terms, i, i + RECORD - 1), number)
    if list.tail ~= '' and #list.tail + #record > LOG_SEGMENT then
      call('HSET', list.key, log_field(list, list.last), list.tail)
      list.last, list.tail = list.last + 1, ''
    end
    list.tail = list.tail .. record
  end
end

-- Returns the places of the first and last byte of a message's record in a log segment.
local function find_record(text, number, from)
  local mark = string.find(text, '\255' .. five(number), from, true)
  if not mark then return nil end
  local _, before = string.find(string.sub(text, 1, mark - 1), '^.*\255.....')
  return (before or 0) + 1, mark + 5
end

local function has_term(terms, term)
  return string.find(terms, term, 1, true) ~= nil
end

-- Returns the bucket of a term, as in `index/postings.rs`.
local function bucket_of(list, term)
  local a, b, c, d = string.byte(term, 2, 5)
  local hash = ((d * 128 + c) * 128 + b) * 128 + a
  local size = 1
  while size * 2 <= list.buckets do size = size * 2 end
  local bucket = hash % (size * 2)
  return bucket < list.buckets and bucket or hash % size
end

local function read_bucket(list, number)
  return call('HGET', list.key, bucket_field(list, number)) or ''
end

local function write_bucket(list, number, before, after)
  if after == before then return end
  list.bytes = list.bytes + #after - #before
  if after == '' then
    call('HDEL', list.key, bucket_field(list, number))
  else
    call('HSET', list.key, bucket_field(list, number), after)
  end
end

-- Returns the entry of a term in a bucket: its first and last place, the number of messages, the number of full segments of postings
-- outside the bucket, and the newest postings. A full segment begins with the highest number it had when it was written.
local function find_entry(bucket, term)
  local from = string.find(bucket, term, 1, true)
  if not from then return nil end
  local to = (string.find(bucket, '[\128-\255]', from + 5) or #bucket + 1) - 1
  local count, at = read_varint(bucket, from + 5)
  local full
  full, at = read_varint(bucket, at)
  return from, to, count, full, string.sub(bucket, at, to)
end

local function entry_of(term, count, full, postings)
  return count > 0 and term .. varint(count) .. varint(full) .. postings or ''
end

local function postings_segment(list, term, number)
  return call('HGET', list.key, postings_field(list, term, number)) or ''
end

-- Returns the number of the full segment that a message belongs to; nil if it belongs to the bucket.
local function segment_of(list, term, full, number)
  local low, high = 1, full + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local text = postings_segment(list, term, middle)
    if text ~= '' and read_five(text, 1) < number then low = middle + 1 else high = middle end
  end
  return low <= full and low or nil
end

-- Adds a message to the postings of a term, or removes it. Returns the number of messages and the newest postings.
local function change_entry(list, term, count, full, postings, number, is_wanted)
  local segment, change = segment_of(list, term, full, number), nil
  if segment then
    local text = postings_segment(list, term, segment)
    local changed
    changed, change = change_postings(string.sub(text, 6), number, is_wanted)
    if change ~= 0 then call('HSET', list.key, postings_field(list, term, segment), string.sub(text, 1, 5) .. changed) end
  else
    postings, change = change_postings(postings, number, is_wanted)
  end
  if change ~= 0 and count + change == 0 then
    for n = 1, full do call('HDEL', list.key, postings_field(list, term, n)) end
  end
  return count + change, postings
end

local function is_long(list)
  return list.last - list.first >= LOG_SEGMENTS
end

-- Returns what a flush of a list needs: the number of the oldest segment, the number of corrections, the number of buckets, the sum of their
-- bytes, and the oldest segments. Returns nothing if the log is short. args: the list.
local function index_oldest(keys, args)
  local list = open_list(keys[1], args[1])
  if not is_long(list) then return {} end
  local segments = {}
  for n = list.first, list.first + FLUSHED_SEGMENTS - 1 do segments[#segments + 1] = log_segment(list, n) end
  return {list.first, list.corrections, list.buckets, list.bytes, segments}
end

-- Replaces the oldest segments of a list by changed buckets, unless the list was flushed or corrected meanwhile. args: the list, the numbers of
-- the oldest segment and of corrections that are expected, the number of segments, the new number of buckets and the sum of their bytes, then
-- fields, without the name of the list, and their contents; an empty one is removed. Returns 1, or 0 if nothing was changed.
local function index_flush(keys, args)
  local list = open_list(keys[1], args[1])
  if list.first ~= tonumber(args[2]) or list.corrections ~= tonumber(args[3]) then return 0 end
  for i = 7, #args, 2 do
    if args[i + 1] == '' then
      call('HDEL', list.key, list.name .. args[i])
    else
      call('HSET', list.key, list.name .. args[i], args[i + 1])
    end
  end
  for _ = 1, tonumber(args[4]) do
    call('HDEL', list.key, log_field(list, list.first))
    list.first = list.first + 1
  end
  list.buckets, list.bytes = tonumber(args[5]), tonumber(args[6])
  save_list(list)
  return 1
end

-- Returns the number of a thread in a part of the index, the position up to which it is indexed, and its first message number.
local function thread_in_index(base, born)
  local info = call('HGET', base .. ':b', born)
  if not info then return nil, 0, 1 end
  return read_five(info, 1), read_five(info, 6), read_five(info, 11)
end

-- Returns the block of a message.
local function block_of(number) return math.floor((number - 1) / BLOCK) end

-- Calls a function with each block from one on, and its number, until it returns a value.
local function each_block(base, first, run)
  local count = tonumber(call('HGET', base .. ':c', 'messages') or '0')
  for block = first, block_of(count) do
    local text = call('HGET', base .. ':d', block)
    local found = text and run(text, block)
    if found then return found end
  end
  return nil
end

-- Returns the number of a message; nil if it has none.
local function find_message(base, thread, seq, first)
  local item = struct.pack('>I4I4', thread, seq)
  return each_block(base, block_of(first), function(text, block)
    local at = string.find(text, item, 1, true)
    while at and (at - 1) % 8 ~= 0 do at = string.find(text, item, at + 1, true) end
    return at and block * BLOCK + (at - 1) / 8 + 1
  end)
end

local function set_message(base, number, thread, seq)
  local block, at = block_of(number), (number - 1) % BLOCK * 8
  local text = call('HGET', base .. ':d', block) or ''
  text = text .. string.rep('\0', at - #text)
  text = string.sub(text, 1, at) .. struct.pack('>I4I4', thread, seq) .. string.sub(text, at + 9)
  if thread == 0 and #text == BLOCK * 8 and not string.find(text, '[^%z]') then
    call('HDEL', base .. ':d', block)
  else
    call('HSET', base .. ':d', block, text)
  end
end

local function add_message(base, thread, seq)
  local number = call('HINCRBY', base .. ':c', 'messages', 1)
  set_message(base, number, thread, seq)
  return number
end

-- Adds messages to the index. args: the owner, the incarnation, the thread, the expected and the new indexed position, then for each
-- message its position and its terms. Returns the indexed position, and 1 if a list has to be flushed.
local function index_add(keys, args)
  local base, born = keys[1], args[2]
  local thread, indexed, first = thread_in_index(base, born)
  if indexed ~= tonumber(args[4]) then return {indexed, 0} end
  if not thread then
    thread = call('HINCRBY', base .. ':c', 'threads', 1)
    first = tonumber(call('HGET', base .. ':c', 'messages') or '0') + 1
    call('HSET', base .. ':h', thread, args[3] .. born)
  end
  local own, all = open_list(base, args[1]), open_list(base, EVERYONE)
  for i = 6, #args, 2 do
    if args[i + 1] ~= '' then
      local number = add_message(base, thread, tonumber(args[i]))
      append_record(own, args[i + 1], number)
      append_record(all, args[i + 1], number)
    end
  end
  save_list(own)
  save_list(all)
  call('HSET', base .. ':b', born, five(thread) .. five(tonumber(args[5])) .. five(first))
  return {tonumber(args[5]), (is_long(own) or is_long(all)) and 1 or 0}
end

-- Replaces the terms of a message in the log of a list. A record without terms keeps its place. Returns false if the log has no record of it.
local function change_log(list, number, terms)
  local is_found = false
  for n = list.first, list.last do
    local text = log_segment(list, n)
    local from, to = find_record(text, number, 1)
    while from do
      local record = is_found and '' or record_of(terms, number)
      is_found = true
      text = string.sub(text, 1, from - 1) .. record .. string.sub(text, to + 1)
      set_log_segment(list, n, text)
      from, to = find_record(text, number, from + #record)
    end
  end
  return is_found
end

-- Adds a message to the postings of a term, or removes it.
local function change_bucket(list, term, number, is_wanted)
  local bucket = bucket_of(list, term)
  local before = read_bucket(list, bucket)
  local from, to, count, full, postings = find_entry(before, term)
  if not from and not is_wanted then return end
  count, postings = change_entry(list, term, count or 0, full or 0, postings or '', number, is_wanted)
  from, to = from or #before + 1, to or #before
  local entry = entry_of(term, count, full or 0, postings)
  write_bucket(list, bucket, before, string.sub(before, 1, from - 1) .. entry .. string.sub(before, to + 1))
end

-- Changes a list so that a message has the terms `terms`. `old` are all terms that it may have; those between two places are removed from
-- the postings, or replaced by the new ones.
local function change_list(list, number, terms, old, from, to)
  list.corrections = list.corrections + 1
  local is_in_log = change_log(list, number, terms)
  if list.buckets == 0 then return end
  for i = from, to - 1 do
    local term = string.sub(old, 5 * i + 1, 5 * i + 5)
    change_bucket(list, term, number, not is_in_log and has_term(terms, term))
  end
end

-- Replaces the terms of one message. A message that is not indexed yet is left alone. args: the owner, the incarnation, the position, the
-- new terms, '1' if the message is removed with its number, the number of the term with which to continue, then all terms that the
-- message may have, including the new ones. Returns 'done', or the number of the term with which to continue.
local function index_edit(keys, args)
  local base, seq, terms = keys[1], tonumber(args[3]), args[4]
  local thread, indexed, first = thread_in_index(base, args[2])
  if not thread or indexed < seq then return 'done' end
  local number = find_message(base, thread, seq, first)
  if not number and terms == '' then return 'done' end
  local from, old = tonumber(args[6]), args[7]
  local to, is_new = math.min(from + STEP_TERMS, #old / 5), not number
  number = number or add_message(base, thread, seq)
  for _, name in ipairs({args[1], EVERYONE}) do
    local list = open_list(base, name)
    if is_new then append_record(list, terms, number) else change_list(list, number, terms, old, from, to) end
    save_list(list)
  end
  if not is_new and to < #old / 5 then return to end
  if args[5] == '1' then set_message(base, number, 0, 0) end
  return 'done'
end

-- Removes a thread whose messages have been removed. args: the incarnation, the block with which to continue or ''. Returns the block with
-- which to continue, or 'done'.
local function index_drop(keys, args)
  local base = keys[1]
  local thread, _, first = thread_in_index(base, args[1])
  if not thread then return 'done' end
  local start, from = struct.pack('>I4', thread), tonumber(args[2]) or block_of(first)
  local rest = each_block(base, from, function(text, block)
    if block >= from + STEP_BLOCKS then return block end
    local at = string.find(text, start, 1, true)
    while at do
      if (at - 1) % 8 == 0 then set_message(base, block * BLOCK + (at - 1) / 8 + 1, 0, 0) end
      at = string.find(text, start, at + 1, true)
    end
  end)
  if rest then return rest end
  call('HDEL', base .. ':h', thread)
  call('HDEL', base .. ':b', args[1])
  return 'done'
end

local function index_position(keys, args)
  local _, indexed = thread_in_index(keys[1], args[1])
  return indexed
end

-- Returns the numbers of the messages in the segments of a log that have a term, five bytes each.
local function search_log(list, segments, term)
  local found = {}
  for n = list.first, list.last do
    local text = segments[n]
    local at = string.find(text, term, 1, true)
    while at do
      local mark = string.find(text, '\255', at, true)
      found[#found + 1] = string.sub(text, mark + 1, mark + 5)
      at = string.find(text, term, mark, true)
    end
  end
  return table.concat(found)
end

-- Returns the first message number of any of the incarnations, 16 bytes each; 1 for none.
local function first_message(base, only)
  local first
  for i = 1, #only, 16 do
    local thread, _, number = thread_in_index(base, string.sub(only, i, i + 15))
    if thread then first = math.min(first or number, number) end
  end
  return first or 1
end

-- Finds messages by terms. args: the list, the incarnations of the only threads or '', the maximum of messages for a term, then terms.
-- Returns the first message of these threads, and for each term the number of messages in the list, the messages in its log, the newest
-- postings, and as many full segments of them as contain the maximum.
local function index_search(keys, args)
  local base, list, max = keys[1], open_list(keys[1], args[1]), tonumber(args[3])
  local first = first_message(base, args[2])
  local results, segments = {}, {}
  for n = list.first, list.last do segments[n] = log_segment(list, n) end
  for i = 4, #args do
    local term = args[i]
    local in_log = search_log(list, segments, term)
    local result = {#in_log / 5, in_log}
    local entry, _, count, full, postings = find_entry(list.buckets > 0 and read_bucket(list, bucket_of(list, term)) or '', term)
    if entry then
      result[1] = result[1] + count
      result[3] = postings
      local _, found = string.gsub(postings, '[%z\1-\63]', '')
      while full > 0 and found < max do
        local text = postings_segment(list, term, full)
        if text == '' or read_five(text, 1) < first then break end
        result[#result + 1] = string.sub(text, 6)
        local _, more = string.gsub(result[#result], '[%z\1-\63]', '')
        found = found + more
        full = full - 1
      end
    end
    results[#results + 1] = result
  end
  return {first, results}
end

-- Returns the threads and positions of messages, 8 bytes each or zeros if there is none, and the names of the threads. args: the
-- incarnations of the only threads or '', the numbers of the messages, five bytes each.
local function index_messages(keys, args)
  local base, only, numbers = keys[1], args[1], args[2]
  local wanted, blocks, names, items, found = {}, {}, {}, {}, {}
  for i = 1, #only, 16 do
    local thread = thread_in_index(base, string.sub(only, i, i + 15))
    if thread then wanted[thread] = true end
  end
  for i = 1, #numbers, 5 do
    local number = read_five(numbers, i)
    local block, at = block_of(number), (number - 1) % BLOCK * 8
    blocks[block] = blocks[block] or call('HGET', base .. ':d', block) or ''
    local item = string.sub(blocks[block], at + 1, at + 8)
    local thread = #item == 8 and struct.unpack('>I4', item) or 0
    if names[thread] == nil then
      local is_wanted = thread > 0 and (only == '' or wanted[thread])
      names[thread] = is_wanted and call('HGET', base .. ':h', thread) or false
      if names[thread] then
        found[#found + 1] = thread
        found[#found + 1] = names[thread]
      end
    end
    items[#items + 1] = names[thread] and item or EVERYONE
  end
  return {table.concat(items), found}
end

-- Returns how many of the terms of a message are missing. args: the owner, the incarnation, the position, the terms.
local function index_check(keys, args)
  local base, terms = keys[1], args[4]
  local thread, indexed, first = thread_in_index(base, args[2])
  if not thread or indexed < tonumber(args[3]) or terms == '' then return 0 end
  local number = find_message(base, thread, tonumber(args[3]), first)
  if not number then return #terms / 5 end
  local list, missing = open_list(base, args[1]), 0
  local logged = {}
  for n = list.first, list.last do
    local text = log_segment(list, n)
    local from, to = find_record(text, number, 1)
    while from do
      for i = from, to - 6, 5 do logged[string.sub(text, i, i + 4)] = true end
      from, to = find_record(text, number, to + 1)
    end
  end
  for i = 1, #terms, 5 do
    local term = string.sub(terms, i, i + 4)
    local is_found = logged[term]
    if not is_found and list.buckets > 0 then
      local entry, _, _, full, postings = find_entry(read_bucket(list, bucket_of(list, term)), term)
      local segment = entry and segment_of(list, term, full, number)
      if segment then postings = string.sub(postings_segment(list, term, segment), 6) end
      if entry then
        local _, change = change_postings(postings, number, false)
        is_found = change ~= 0
      end
    end
    if not is_found then missing = missing + 1 end
  end
  return missing
end

redis.register_function('threadkeep_@V@_index_add', index_add)
redis.register_function('threadkeep_@V@_index_flush', index_flush)
redis.register_function('threadkeep_@V@_index_edit', index_edit)
redis.register_function('threadkeep_@V@_index_drop', index_drop)
redis.register_function{function_name = 'threadkeep_@V@_index_oldest', callback = index_oldest, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_index_position', callback = index_position, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_index_search', callback = index_search, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_index_messages', callback = index_messages, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_index_check', callback = index_check, flags = {'no-writes'}}
