#!lua name=threadkeep_@V@
-- Every function works on keys in one hash slot: the key that it receives, and keys that begin with it. It checks before it writes,
-- because Redis does not undo the writes of a function that fails.

-- `redis.call` exists only while a function runs, so the first call looks it up.
local call
call = function(...)
  call = redis.call
  return call(...)
end

-- Marks a thread in the lists of its tenant.
local function place_mark(base, field, content)
  call('HSET', base .. ':q', field, call('TIME')[1] .. ':' .. content)
end

-- Runs commands, each a count and that many words. 'MOVE' renames a key that may be missing, 'MARK' is followed by what `mark` needs.
local function run_commands(args, i)
  while i <= #args do
    local count = tonumber(args[i])
    if args[i + 1] == 'MOVE' then
      if call('EXISTS', args[i + 2]) == 1 then call('RENAME', args[i + 2], args[i + 3]) end
    elseif args[i + 1] == 'MARK' then
      place_mark(args[i + 2], args[i + 3], args[i + 4])
    else
      call(unpack(args, i + 1, i + count))
    end
    i = i + count + 1
  end
end

-- Runs commands if the revision in a hash is the expected one, and writes the new revision.
-- keys: the hash. args: the expected revision ('' for none, '*' for any), the new one, then commands.
-- Returns 1, or 0 if the revision is another one.
local function apply(keys, args)
  local key, expected, revision = keys[1], args[1], args[2]
  local current = call('HGET', key, 'rev') or ''
  if expected ~= '*' and current ~= expected then
    if current ~= revision then return 0 end
    -- A repeated call, whose first reply was lost. It writes something, so that WAIT on this connection covers the first call.
    call('HSET', key, 'rev', revision)
    return 1
  end
  call('HSET', key, 'rev', revision)
  run_commands(args, 3)
  return 1
end

-- The maximum number of messages that one command writes or looks up.
local MAX_MESSAGES = 400

-- Calls a function for each part of `count` numbers, with the first and the last number of the part.
local function each_part(count, run)
  for first = 1, count, MAX_MESSAGES do
    if run(first, math.min(count, first + MAX_MESSAGES - 1)) then return true end
  end
  return false
end

-- Whether a hash has any of the fields that stand at `from` and every `step` further.
local function has_any(key, args, from, step, count)
  return each_part(count, function(first, last)
    local fields = {}
    for n = first, last do fields[#fields + 1] = args[from + (n - 1) * step] end
    for _, value in ipairs(call('HMGET', key, unpack(fields))) do
      if value then return true end
    end
  end)
end

-- Writes a commit that was decided without reading: if the revision of the thread is the expected one, and neither the idempotency key
-- nor the ids of the new messages are known. keys: the start of the thread's keys. args: the expected revision, the new one; the row, the last
-- and the first position; the idempotency key, the number of the change, its entry; new messages, after their number: for each its id, its
-- position and its row; external ids, after their number; then commands.
-- Returns 1, or 0 if something is known: then the caller reads and decides again.
local function commit(keys, args)
  local base, revision, key = keys[1], args[2], args[6]
  local current = call('HGET', base .. ':t', 'rev')
  if current == revision then
    -- A repeated call, as in `apply`.
    call('HSET', base .. ':t', 'rev', revision)
    return 1
  end
  if current ~= args[1] or call('HEXISTS', base .. ':k', key) == 1 then return 0 end
  local messages = tonumber(args[9])
  local external = 10 + 3 * messages
  local external_ids = tonumber(args[external])
  if has_any(base .. ':i', args, 10, 3, messages) or has_any(base .. ':x', args, external + 1, 1, external_ids) then return 0 end
  call('HSET', base .. ':t', 'rev', revision, 'row', args[3], 'seq', args[4], 'first', args[5])
  each_part(messages, function(first, last)
    local rows, ids = {}, {}
    for n = first, last do
      local at = 7 + 3 * n
      rows[#rows + 1], rows[#rows + 2] = args[at + 1], args[at + 2]
      ids[#ids + 1], ids[#ids + 2] = args[at], args[at + 1]
    end
    call('HSET', base .. ':m', unpack(rows))
    call('HSET', base .. ':i', unpack(ids))
  end)
  call('HSET', base .. ':c', args[7], args[8])
  call('HSET', base .. ':k', key, args[7])
  run_commands(args, external + 1 + external_ids)
  return 1
end

-- Reads rows of a thread in one direction. Returns the found positions and rows, and the position at which to continue, or ''.
local function read_rows(base, gaps, newest, lo, hi, limit, bytes, all)
  gaps = gaps and cjson.decode(gaps) or {}
  local found, size, scanned = {}, 0, 0
  local at = newest and hi or lo
  while at >= lo and at <= hi do
    if #found >= 2 * limit or size >= bytes or scanned >= 20000 then return found, string.format('%.0f', at) end
    local seqs = {}
    local wanted = math.min(limit - #found / 2, 64)
    while #seqs < wanted and at >= lo and at <= hi do
      local skipped = false
      for _, gap in ipairs(gaps) do
        if at >= gap[1] and at <= gap[2] then
          at = newest and gap[1] - 1 or gap[2] + 1
          skipped = true
        end
      end
      if not skipped then
        seqs[#seqs + 1] = string.format('%.0f', at)
        at = newest and at - 1 or at + 1
      end
    end
    scanned = scanned + #seqs
    if #seqs > 0 then
      local rows = call('HMGET', base .. ':m', unpack(seqs))
      for i, row in ipairs(rows) do
        if row and (all or string.byte(row) ~= 84) then
          if size >= bytes then return found, seqs[i] end
          found[#found + 1] = seqs[i]
          found[#found + 1] = row
          size = size + #row
        end
      end
    end
  end
  return found, ''
end

local function read_records(base, from, to, limit)
  local names = call('ZRANGEBYLEX', base .. ':n', from, to, 'LIMIT', 0, limit)
  if #names == 0 then return {{}, {}} end
  return {names, call('HMGET', base .. ':d', unpack(names))}
end

-- Reads a thread and parts of it as of one instant.
-- args: 'newest', 'oldest' or '' for no messages; the first and last position; the maximum numbers of rows and of bytes; 'all' to include
-- tombstones; the number of record names, and the names; then the bounds and limits of lists of records.
local function read(keys, args)
  local base = keys[1]
  local row = call('HMGET', base .. ':t', 'rev', 'row', 'seq', 'first', 'gaps')
  if not row[2] then return {} end
  local rows, continue = {}, ''
  if args[1] ~= '' then
    local lo = math.max(tonumber(args[2]), tonumber(row[4]))
    local hi = math.min(tonumber(args[3]), tonumber(row[3]))
    rows, continue = read_rows(base, row[5], args[1] == 'newest', lo, hi, tonumber(args[4]), tonumber(args[5]), args[6] == 'all')
  end
  local count, records = tonumber(args[7]), {}
  if count > 0 then records = call('HMGET', base .. ':d', unpack(args, 8, 7 + count)) end
  local lists = {}
  for i = 8 + count, #args, 3 do lists[#lists + 1] = read_records(base, args[i], args[i + 1], tonumber(args[i + 2])) end
  return {row[1], row[2], rows, continue, records, lists}
end

local function get_all(key, args, from, count)
  if count == 0 then return {} end
  return call('HMGET', key, unpack(args, from, from + count - 1))
end

-- Reads what the decision about a commit needs.
-- args: the idempotency key; the position below which messages are trimmed, or ''; then four lists, each preceded by its length: ids and
-- external ids of new messages, names of records, ids of messages to change.
local function facts(keys, args)
  local base = keys[1]
  local row = call('HMGET', base .. ':t', 'rev', 'row', 'first')
  if not row[2] then return {} end
  local change = call('HGET', base .. ':k', args[1])
  local commit = change and call('HGET', base .. ':c', change)
  local erased = 0
  if args[2] ~= '' then erased = call('ZCOUNT', base .. ':e', row[3], '(' .. args[2]) end
  local lists, i = {}, 3
  for n, key in ipairs({':i', ':x', ':d', ':i'}) do
    local count = tonumber(args[i])
    lists[n] = get_all(base .. key, args, i + 1, count)
    i = i + count + 1
  end
  local messages = {}
  for n, seq in ipairs(lists[4]) do messages[n] = seq and call('HGET', base .. ':m', seq) or false end
  return {row[1], row[2], commit, erased, lists[1], lists[2], lists[3], lists[4], messages}
end

-- Reads a thread and its change log entries from a change on. args: the change, the limit.
local function changes(keys, args)
  local base = keys[1]
  local row = call('HMGET', base .. ':t', 'rev', 'row')
  if not row[2] then return {} end
  local after, limit, numbers = tonumber(args[1]), tonumber(args[2]), {}
  for i = 0, limit do numbers[#numbers + 1] = string.format('%.0f', after + i) end
  return {row[1], row[2], call('HMGET', base .. ':c', unpack(numbers))}
end

-- What one call changes in the lists of a tenant besides single threads: the last number of a change, and the message counts of owners.
local function begin_touch(base)
  local now = call('TIME')
  local last = tonumber(call('HGET', base .. ':n', 'last') or '0')
  return {base = base, now = now[1] * 1000000 + now[2], last = last, before = last, counts = {}}
end

local function end_touch(touch)
  if touch.last > touch.before then call('HSET', touch.base .. ':n', 'last', string.format('%.0f', touch.last)) end
  local all = 0
  for owner, change in pairs(touch.counts) do
    if change ~= 0 then call('HINCRBY', touch.base .. ':m', owner, change) end
    all = all + change
  end
  if all ~= 0 then call('HINCRBY', touch.base .. ':m', '', all) end
end

local function next_stamp(touch)
  touch.last = math.max(touch.last + 1, touch.now)
  return string.format('%.0f', touch.last)
end

-- Changes the message count of an owner, and that of all owners.
local function count_messages(touch, owner, change)
  touch.counts[owner] = (touch.counts[owner] or 0) + change
end

local function forget_thread(base, id, owner)
  for _, list in ipairs({':c', ':r', ':s'}) do
    call('ZREM', base .. list, id)
    if owner then call('ZREM', base .. list .. ':' .. owner, id) end
  end
end

local function write_info(base, id, info)
  call('HSET', base .. ':i', id, cjson.encode(info))
end

local function add_to_lists(base, lists, stamp, id, owner)
  for _, list in ipairs(lists) do
    call('ZADD', base .. list, stamp, id)
    call('ZADD', base .. list .. ':' .. owner, stamp, id)
  end
end

-- Brings the lists up to date with a write to a thread when the lists already contain a later write to it.
local function touch_late(touch, id, number, quiet, info)
  if quiet or info.g or (info.v or info.n) >= number then return end
  -- The later write was quiet, so subscribers have not seen this write.
  info.s = next_stamp(touch)
  info.v = number
  add_to_lists(touch.base, {':s', ':r'}, info.s, id, info.o)
  write_info(touch.base, id, info)
end

local function touch_missing(touch, id, number, info, history)
  local base = touch.base
  -- The id may have been used again.
  if not info or (info.n > number and info.e == history) then return end
  forget_thread(base, id, info.o)
  count_messages(touch, info.o, -info.m)
  if info.g then
    local swept = tonumber(call('HGET', base .. ':n', 'swept') or '0')
    if tonumber(info.s) > swept then call('HSET', base .. ':n', 'swept', info.s) end
  end
  call('HDEL', base .. ':i', id)
  call('ZREM', base .. ':z', id)
end

-- Brings the lists up to date with the row of one thread. What they know of it tells which of them change. Its keys: `n` and `v`, the numbers
-- of the last write and of the last one that subscribers see; `o` the owner; `b` the incarnation; `s` the last number of a change; `m` the
-- number of messages; `g` if it is deleted; `e` the history; `l` if it is live; `z` when it has to be swept; `d` if it has a driver.
local function touch_thread(touch, history, id, number, owner, state, born, quiet, sweep_at, driven, unindexed, garbage, messages)
  local base = touch.base
  if garbage ~= '' then call('HSET', base .. ':n', 'garbage', garbage) end
  if unindexed then call('SADD', base .. ':u', id) end
  local known = call('HGET', base .. ':i', id)
  local info = known and cjson.decode(known)
  if state == 'none' then return touch_missing(touch, id, number, info, history) end
  -- A failover may have lost the writes that the lists know of. Then their numbers are used again.
  if info and info.n >= number and info.e == history then return touch_late(touch, id, number, quiet, info) end
  local is_same = info and info.o == owner and info.b == born
  if info and not is_same then forget_thread(base, id, info.o) end
  local count = state == 'live' and messages or 0
  if info then count_messages(touch, info.o, -info.m) end
  count_messages(touch, owner, count)
  local stamp, visible
  if quiet and info then
    stamp, visible = info.s, info.v or info.n
  else
    stamp, visible = next_stamp(touch), number
    add_to_lists(base, {':s'}, stamp, id, owner)
  end
  if state == 'live' then
    if not (is_same and info.l) then
      call('ZADD', base .. ':c', 'NX', stamp, id)
      call('ZADD', base .. ':c:' .. owner, 'NX', stamp, id)
    end
    add_to_lists(base, {':r'}, stamp, id, owner)
  else
    for _, list in ipairs({':c', ':r', ':c:' .. owner, ':r:' .. owner}) do call('ZREM', base .. list, id) end
  end
  if not info or info.z ~= sweep_at then
    if sweep_at == '' then call('ZREM', base .. ':z', id) else call('ZADD', base .. ':z', sweep_at, id) end
  end
  if driven then call('ZADD', base .. ':d', 0, id) elseif not info or info.d ~= false then call('ZREM', base .. ':d', id) end
  if not info or info.o ~= owner then call('ZADD', base .. ':o', 0, owner) end
  write_info(base, id, {
    n = number, v = visible, o = owner, b = born, s = stamp, m = count, g = state == 'gone' or nil, e = history,
    l = state == 'live' or nil, z = sweep_at, d = driven,
  })
end

-- Brings the lists of a tenant up to date with the rows of threads.
-- args: the history of the store; a list of marks to clear, after its length; then for each thread: its id, the number of its last write, its owner, its state
-- ('live', 'gone', 'expired' or 'none'), the identity of this incarnation, 'quiet' if subscribers need not see the write, when it has to
-- be swept or '', whether it has a driver, whether it has to be indexed, '' or an identifier if text was removed, the number of messages.
local function touch(keys, args)
  local base, first = keys[1], 3 + tonumber(args[2])
  if first <= #args then
    local change = begin_touch(base)
    for i = first, #args, 11 do
      touch_thread(change, args[1], args[i], tonumber(args[i + 1]), args[i + 2], args[i + 3], args[i + 4], args[i + 5] == 'quiet', args[i + 6],
        args[i + 7] == '1', args[i + 8] == '1', args[i + 9], tonumber(args[i + 10]))
    end
    end_touch(change)
  end
  if first > 3 then call('HDEL', base .. ':q', unpack(args, 3, first - 1)) end
  return 1
end

local function marks(base)
  return call('HGETALL', base .. ':q')
end

-- Marks a thread as indexed, unless it has been written to since. args: the thread, the number of the indexed write.
local function indexed(keys, args)
  local known = call('HGET', keys[1] .. ':i', args[1])
  if known and cjson.decode(known).n ~= tonumber(args[2]) then return 0 end
  return call('SREM', keys[1] .. ':u', args[1])
end

-- Lists threads that may have unindexed messages. args: the owner, or '' for all; the limit.
local function unindexed(keys, args)
  local base, found = keys[1], {}
  for _, id in ipairs(call('SMEMBERS', base .. ':u')) do
    local known = args[1] ~= '' and call('HGET', base .. ':i', id)
    if #found < tonumber(args[2]) and (args[1] == '' or (known and cjson.decode(known).o == args[1])) then
      found[#found + 1] = id
    end
  end
  return {found, marks(base), call('TIME')[1]}
end

-- Marks a thread before it is written, so that readers of the lists look at it even if the writer ends before it updates them.
-- args: the thread and the identity of the mark, what readers have to know of it.
local function mark(keys, args)
  place_mark(keys[1], args[1], args[2])
  return 1
end

-- Lists threads. args: the list, 'up' or 'down', the score and thread after which to start ('' for the beginning), the limit.
local function list(keys, args)
  local base, key, down = keys[1], keys[1] .. args[1], args[2] == 'down'
  local score, after, limit = args[3], args[4], tonumber(args[5])
  local found, offset = {}, 0
  while #found < 2 * limit do
    local page
    if down then
      page = call('ZREVRANGEBYSCORE', key, score == '' and '+inf' or score, '-inf', 'WITHSCORES', 'LIMIT', offset, limit)
    else
      page = call('ZRANGEBYSCORE', key, score == '' and '-inf' or score, '+inf', 'WITHSCORES', 'LIMIT', offset, limit)
    end
    if #page == 0 then break end
    offset = offset + #page / 2
    for i = 1, #page, 2 do
      local id, number = page[i], page[i + 1]
      local skipped = score ~= '' and tonumber(number) == tonumber(score)
        and ((down and id >= after) or (not down and id <= after))
      if not skipped and #found < 2 * limit then
        found[#found + 1] = id
        found[#found + 1] = string.format('%.0f', tonumber(number))
      end
    end
  end
  local numbers = call('HMGET', base .. ':n', 'last', 'swept')
  return {found, marks(base), call('TIME')[1], numbers[1] or '0', numbers[2] or '0'}
end

-- Lists of items of a fixed width under a name in a hash. The newest items are in the field of the name, after the number of all
-- items and the number of further fields; full segments are in fields of their own.
local SEGMENT = 1024

local function segment(name, number)
  return name .. struct.pack('>I4', number)
end

local function add_item(key, name, item)
  local head = call('HGET', key, name)
  local count, full, tail = 0, 0, ''
  if head then
    count, full = struct.unpack('>I4I4', head)
    tail = string.sub(head, 9)
  end
  if #tail >= SEGMENT then
    full = full + 1
    call('HSET', key, segment(name, full), tail)
    tail = ''
  end
  call('HSET', key, name, struct.pack('>I4I4', count + 1, full) .. tail .. item)
end

local function without_item(items, item)
  local from = 1
  while true do
    local at = string.find(items, item, from, true)
    if not at then return nil end
    if (at - 1) % #item == 0 then return string.sub(items, 1, at - 1) .. string.sub(items, at + #item) end
    from = at + 1
  end
end

local function remove_item(key, name, item)
  local head = call('HGET', key, name)
  if not head then return false end
  local count, full = struct.unpack('>I4I4', head)
  local tail = string.sub(head, 9)
  local rest = without_item(tail, item)
  local number = full
  while not rest and number > 0 do
    local items = call('HGET', key, segment(name, number))
    local kept = items and without_item(items, item)
    if kept then
      call('HSET', key, segment(name, number), kept)
      rest = tail
    end
    number = number - 1
  end
  if not rest then return false end
  if count <= 1 then
    call('HDEL', key, name)
    for n = 1, full do call('HDEL', key, segment(name, n)) end
  else
    call('HSET', key, name, struct.pack('>I4I4', count - 1, full) .. rest)
  end
  return true
end

-- Returns the number of items, and the newest segments that together have at least `max` items.
local function read_items(key, name, width, max)
  local head = call('HGET', key, name)
  if not head then return {0} end
  local count, full = struct.unpack('>I4I4', head)
  local result, size = {count, string.sub(head, 9)}, #head - 8
  while full > 0 and size < max * width do
    local items = call('HGET', key, segment(name, full)) or ''
    result[#result + 1] = items
    size = size + #items
    full = full - 1
  end
  return result
end

local function each_term(terms, run)
  for i = 1, #terms, 8 do run(string.sub(terms, i, i + 7)) end
end

local function remove_entry(base, id)
  local head = call('HGET', base .. ':i', id)
  if not head then return 0 end
  local number = struct.unpack('>I4', head)
  local item = struct.pack('>I4', number)
  each_term(string.sub(head, 5), function(term) remove_item(base .. ':w', term, item) end)
  call('HDEL', base .. ':i', id)
  call('HDEL', base .. ':e', number)
  call('HDEL', base .. ':v', number)
  return 1
end

-- Adds or replaces entries of a collection. args: for each the id, the content, the embedding or '', the terms.
local function entries_put(keys, args)
  local base = keys[1]
  for i = 1, #args, 4 do
    local id = args[i]
    remove_entry(base, id)
    local number = call('HINCRBY', base .. ':n', 'entries', 1)
    local item = struct.pack('>I4', number)
    call('HSET', base .. ':e', number, args[i + 1])
    if args[i + 2] ~= '' then call('HSET', base .. ':v', number, args[i + 2]) end
    call('HSET', base .. ':i', id, item .. args[i + 3])
    each_term(args[i + 3], function(term) add_item(base .. ':w', term, item) end)
  end
  return #args / 4
end

local function entries_remove(keys, args)
  local removed = 0
  for _, id in ipairs(args) do removed = removed + remove_entry(keys[1], id) end
  return removed
end

local function entries_drop(keys)
  local base = keys[1]
  local count = call('HLEN', base .. ':i')
  for _, part in ipairs({':i', ':e', ':v', ':w', ':n'}) do call('UNLINK', base .. part) end
  return count
end

-- Calls a function with all items of a term, the newest first, until it returns true.
local function each_item(base, term, run)
  local found = read_items(base .. ':w', term, 4, math.huge)
  for part = 2, #found do
    local items = found[part]
    for at = #items - 3, 1, -4 do
      if run(string.sub(items, at, at + 3)) then return end
    end
  end
end

-- Returns a table whose keys are the items that pass all filters; nil without filters. A filter is a string of terms, one of which an
-- item must have.
local function passing_items(base, filters)
  local passing
  for _, terms in ipairs(filters) do
    local kept = {}
    each_term(terms, function(term)
      each_item(base, term, function(item)
        if not passing or passing[item] then kept[item] = true end
      end)
    end)
    passing = kept
  end
  return passing
end

-- Finds entries. args: the maximum of items for a term, 1 if the items that pass the filters are wanted or 0, the number of filters, the
-- filters, then terms. Returns the number of entries, for each term the number of items and the newest items, and the wanted items.
-- Only items that pass the filters are counted, up to the maximum.
local function entries_search(keys, args)
  local base, max, first = keys[1], tonumber(args[1]), 4 + tonumber(args[3])
  local passing = passing_items(base, {unpack(args, 4, first - 1)})
  local lists, wanted = {}, {}
  for i = first, #args do
    local count, found = 0, {}
    if passing then
      each_item(base, args[i], function(item)
        if passing[item] then found[#found + 1] = item end
        return #found >= max
      end)
      count = #found
    else
      found = read_items(base .. ':w', args[i], 4, max)
      count = table.remove(found, 1)
    end
    lists[#lists + 1] = {count, table.concat(found)}
  end
  if passing and args[2] == '1' then
    for item in pairs(passing) do wanted[#wanted + 1] = item end
  end
  return {call('HLEN', base .. ':i'), lists, table.concat(wanted)}
end

-- Runs a command that reads one key. args: the words of the command.
local function look_up(keys, args)
  return call(unpack(args))
end

-- Gives a thread key to another thread, or removes it, if it belongs to the expected thread. args: the thread, the new one or ''.
local function change_claim(keys, args)
  if call('HGET', keys[1], 'id') ~= args[1] then return 0 end
  if args[2] == '' then call('UNLINK', keys[1]) else call('HSET', keys[1], 'id', args[2]) end
  return 1
end

-- Notes the replication ids of the primaries. A new id of a primary that was a replica shows that it has taken over, so the store gets a
-- new history. args: an identifier for it; then for each primary its id, and '1' if it was a replica. Returns the identifier that is valid.
local function note_primaries(keys, args)
  local about = call('HMGET', keys[1], 'primaries', 'history')
  local known, history = about[1] or '', about[2]
  local is_first, changed = not history, not history
  for i = 2, #args, 2 do
    if not string.find(known, args[i], 1, true) then
      -- About 100 ids are kept.
      known = string.sub(known .. ',' .. args[i], -4100)
      changed = true
      if args[i + 1] == '1' and not is_first then history = args[1] end
    end
  end
  if is_first then history = args[1] end
  if changed then call('HSET', keys[1], 'primaries', known, 'history', history) end
  return history
end

redis.register_function('threadkeep_@V@_change_claim', change_claim)
redis.register_function('threadkeep_@V@_note_primaries', note_primaries)
redis.register_function('threadkeep_@V@_indexed', indexed)
redis.register_function('threadkeep_@V@_apply', apply)
redis.register_function('threadkeep_@V@_commit', commit)
redis.register_function('threadkeep_@V@_touch', touch)
redis.register_function('threadkeep_@V@_mark', mark)
redis.register_function('threadkeep_@V@_entries_put', entries_put)
redis.register_function('threadkeep_@V@_entries_remove', entries_remove)
redis.register_function('threadkeep_@V@_entries_drop', entries_drop)
redis.register_function{function_name = 'threadkeep_@V@_look_up', callback = look_up, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_read', callback = read, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_facts', callback = facts, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_changes', callback = changes, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_list', callback = list, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_entries_search', callback = entries_search, flags = {'no-writes'}}
redis.register_function{function_name = 'threadkeep_@V@_unindexed', callback = unindexed, flags = {'no-writes'}}
