package redisstore

// What changes a key without booking.

const luaRefund = luaNow + luaCommon + `
local key, gen, booked, ready = KEYS[1], num(), num(), num()
local old = redis.call('HMGET', key, 'g', 't')
if tonumber(old[1]) ~= gen or gen == 0 or restored(gen) then return 0 end
for i = 1, num() do
  local kind, id, units, a, held, size = str(), str(), num(), num(), num(), num()
  local field = kind .. id
  local value = redis.call('HGET', key, field)
  if value and units > 0 then
    if kind == 'm' then
      local level, _, at = meter(value, tonumber(old[2]) or 0)
      level = level or 0
      local drained = level - a * max(0, now - at)
      held = held - a * max(0, now - booked) - max(0, drained - size)
      redis.call('HSET', key, field, format('%.17g', level - min(units, max(0, min(drained, held)))) .. string.match(value, ' .*$'))
    elseif kind == 'c' then
      local level, ends = pair(value)
      if ready < ends and ready >= ends - a then
        redis.call('HSET', key, field, format('%.17g %.0f', max(0, level - units), ends))
      end
    else
      local es = entries(value, nil, 0)
      takeunits(es, a, ready, units)
      redis.call('HSET', key, field, packed(es, rest(value)))
    end
  end
end
return 1
`

const luaTell = luaNow + luaCommon + `
local key, resume, pause, guess = KEYS[1], num(), num(), num()
local raw = redis.call('HGETALL', key)
local f, stated, set = {}, {}, {}
for i = 1, #raw, 2 do
  f[raw[i]] = raw[i + 1]
  if string.match(raw[i], '^s%d+:') then stated[#stated + 1] = raw[i] end
end
if not f.g then
  set = {'t', int(now), 'g', int(newgen())}
end
local at = max(now, tonumber(f.t) or 0)
local expires = at + 1000000
local gone = {}
if resume > 0 then
  gone = {'p', 'q'}
  f.p, f.q = nil, nil
end
local function holds(field, span)
  local ends = tonumber(f[field]) or 0
  if span > 0 then
    ends = max(ends, at + span)
    set[#set + 1] = field
    set[#set + 1] = int(ends)
  end
  if pause > 0 or guess > 0 then expires = max(expires, ends + 60000000) end
end
holds('p', pause)
holds('q', guess)
for i = 1, num() do
  local id, unit, remaining, reset = str(), str(), num(), num()
  local field, slack, write = 's' .. #unit .. ':' .. unit .. id, max(1000000, floor(reset / 20)), true
  local ends = at + reset
  expires = max(expires, ends + 1000000)
  if f[field] then
    local r, e = pair(f[field])
    if e <= at or ends > e + slack then
    elseif ends >= e - slack then remaining, ends = min(r, remaining), e
    else write = false end
  elseif #stated >= 8 then
    local first, least = 1, nil
    for j = 1, #stated do
      local _, e = pair(f[stated[j]])
      if not least or e < least then first, least = j, e end
    end
    if least < ends then
      gone[#gone + 1] = stated[first]
      f[stated[first]] = nil
      stated[first] = field
    else
      write = false
    end
  else
    stated[#stated + 1] = field
  end
  if write then
    f[field] = format('%.17g %.0f', remaining, ends)
    set[#set + 1] = field
    set[#set + 1] = f[field]
  end
end
for i = 1, num() do
  local kind, id, units = str(), str(), num()
  local field = kind .. id
  local value = f[field]
  if value then
    if kind == 'm' then
      value = format('%.17g', max(-1e15, (meter(value, 0) or 0) - units)) .. string.match(value, ' .*$')
    elseif kind == 'c' then
      local level, ends = pair(value)
      value = format('%.17g %.0f', max(0, level - units), ends)
    else
      local es = entries(value, nil, 0)
      for i = 1, #es do
        local back = min(units, es[i][2])
        units, es[i][2] = units - back, es[i][2] - back
      end
      value = packed(es, rest(value))
    end
    f[field] = value
    set[#set + 1] = field
    set[#set + 1] = value
  end
end
if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
if #set > 0 then redis.call('HSET', key, unpack(set)) end
local left = ceil((expires - now) / 1000)
if redis.call('PTTL', key) < left then redis.call('PEXPIRE', key, int(left)) end
return 1
`
