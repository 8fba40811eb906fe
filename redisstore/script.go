package redisstore

// The scripts say in Lua what throttle.Ledger says in Go, with the same
// operations on doubles in the same order; the tests compare the two. A key is
// a hash:
//
//	g        names its state, see throttle.Standing
//	t        as of when its meters stand, microseconds of the server's clock
//	p        nothing starts before; absent: no pause
//	m<id>    meter: level
//	l<id>    log: "at units at units ...", oldest first
//	c<id>    calendar: "used ends"
//	s<n>:<unit><id>  stated quota, n the length of unit: "remaining ends"
//
// Only what is given in KEYS is touched, so Cluster and proxies can route.
// Instants are below 2^53 and never pass through tostring, which keeps 14
// digits.

const luaCommon = `
local max, min, floor, ceil, format = math.max, math.min, math.floor, math.ceil, string.format
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local arg = 0
local function str() arg = arg + 1 return ARGV[arg] end
local function num() arg = arg + 1 return tonumber(ARGV[arg]) end
local function newgen() return max(1, now % 2147483648) end
local function int(n) return format('%.0f', n) end
local function pair(s)
  local a, b = string.match(s or '', '^(%S+) (%S+)')
  return tonumber(a) or 0, tonumber(b) or 0
end
local function entries(s, per, back)
  local es = {}
  for a, b in string.gmatch(s or '', '(%S+) (%S+)') do
    local t, n = (tonumber(a) or 0) - back, tonumber(b) or 0
    if t + per > now and n > 0 then es[#es + 1] = {t, n} end
  end
  return es
end
local function packed(es)
  local s = {}
  for i = 1, #es do s[i] = format('%.0f %.17g', es[i][1], es[i][2]) end
  return table.concat(s, ' ')
end
`

const luaBook = luaCommon + luaView + luaWait + luaCharge + `
local maxwait, force = num(), num() == 1
local views = {}
for k = 1, #KEYS do views[k] = view(KEYS[k]) end
local outcome, wait, draw, limit = 2, 0, -1, -1
if force then
  outcome = 1
else
  for k = 1, #views do
    if not fitsall(views[k]) then outcome = 1 end
  end
  if outcome == 1 then
    outcome, wait, draw, limit = firstfits(views, maxwait)
  end
end
local reply = {outcome, wait, now, draw, limit}
for k = 1, #views do
  local v = views[k]
  if outcome == 1 or outcome == 2 then charge(v, now + wait, outcome == 2) end
  reply[#reply + 1] = int(v.merged and v.seengen or v.gen)
  reply[#reply + 1] = int(v.merged and v.seenat or v.at)
  reply[#reply + 1] = int(max(0, v.pause - now))
  for i = 1, #v.limits do
    local l = v.limits[i]
    reply[#reply + 1] = format('%.17g', l.kind == 'l' and total(l) or l.level)
  end
end
return reply
`

const luaView = `
local function total(l)
  local sum = 0
  for i = 1, #l.es do sum = sum + l.es[i][2] end
  return sum
end

local function readlimit(v, lost, age, back)
  local l = {kind = str(), id = str()}
  l.unit, l.size, l.tol = v.units[num()], num(), num()
  local old, seen = v.f[l.kind .. l.id], nil
  if l.kind == 'm' then
    l.rate, l.credit = num(), num()
    local most = num()
    l.level = tonumber(old) or -max(0, l.credit)
    l.level = max(-max(0, l.credit), l.level - l.rate * max(0, now - v.at))
    if v.seengen ~= 0 then seen = num() end
    if lost and seen and seen <= most then l.level = max(l.level, seen - l.rate * age) end
  elseif l.kind == 'c' then
    local per, ends = num(), num()
    ends = ends + (floor((now - ends) / per) + 1) * per
    l.level, l.ends = pair(old)
    if l.ends < ends or l.ends > ends + per then l.level, l.ends = 0, ends end
    if v.seengen ~= 0 then seen = num() end
    if lost and seen and now - age >= l.ends - per then l.level = max(l.level, min(seen, l.size)) end
  else
    l.per, l.grain = num(), num()
    l.es = entries(old, l.per, back)
    if v.seengen ~= 0 then seen = num() end
    if lost and seen then
      local missing, at, i = min(seen, l.size) - total(l), now - age, 1
      if missing > 0 and at + l.per > now then
        while i <= #l.es and l.es[i][1] <= at do i = i + 1 end
        table.insert(l.es, i, {at, missing})
      end
    end
  end
  return l
end

local function view(key)
  local raw = redis.call('HGETALL', key)
  local f, v = {}, {key = key, units = {}, limits = {}, stated = {}, gone = {}}
  for i = 1, #raw, 2 do f[raw[i]] = raw[i + 1] end
  v.f, v.gen, v.at, v.pause = f, tonumber(f.g) or 0, tonumber(f.t) or 0, tonumber(f.p) or 0
  local back = max(0, v.at - now)
  if v.pause > 0 then v.pause = max(0, v.pause - back) end
  for i = 1, num() do
    local name, first, all = str(), num(), num()
    v.units[i] = {name = name, first = first, all = all}
  end
  for i = 1, #raw, 2 do
    local n, rest = string.match(raw[i], '^s(%d+):(.*)$')
    if n then
      local remaining, ends = pair(raw[i + 1])
      if ends - back > now then
        v.stated[#v.stated + 1] = {field = raw[i], unit = string.sub(rest, 1, tonumber(n)), remaining = remaining, ends = ends - back}
      else
        v.gone[#v.gone + 1] = raw[i]
      end
    end
  end
  v.seengen, v.seenat = num(), 0
  local age, paused, lost = 0, 0, false
  if v.seengen ~= 0 then
    v.seenat, age, paused = num(), num(), num()
    lost = v.seengen ~= v.gen or v.seenat > v.at
  end
  if back > 0 then v.gen = newgen() end
  for i = 1, num() do v.limits[i] = readlimit(v, lost, age, back) end
  v.merged = lost
  if lost and paused > age then v.pause = max(v.pause, now + paused - age) end
  return v
end
`

const luaWait = `
local function used(v, l, first)
  local u = max(0, l.level)
  if v.pause > 0 then u = max(u, max(0, l.size - first) + l.rate * (v.pause - now)) end
  return u
end

local function idled(v, l)
  if v.pause == 0 then return l.level end
  return max(l.level, l.rate * (v.pause - now))
end

local function ceilwait(units, rate)
  return ceil(min(units / rate, 34560000000000))
end

local function logwait(l, c)
  local ready = now
  if #l.es > 0 then ready = max(ready, l.es[#l.es][1]) end
  local need = total(l) + c - l.size
  for i = 1, #l.es do
    if need <= 0 then break end
    need = need - l.es[i][2]
    ready = max(ready, l.es[i][1] + l.per)
  end
  return ready - now
end

local function limitwait(v, l, c)
  if l.kind == 'm' then
    if l.credit >= 0 and c > l.size + l.credit then return -1 end
    local need
    if c <= l.size then need = used(v, l, c) + c - l.size
    elseif l.credit < 0 then need = used(v, l, c)
    else need = idled(v, l) + c - l.size end
    if need <= l.tol then return 0 end
    return ceilwait(need - l.tol, l.rate)
  end
  if c > l.size then return -1 end
  if l.kind == 'l' then return logwait(l, c) end
  if l.level + c > l.size then return l.ends - now end
  return 0
end

local function cost(v, unit, which)
  for i = 1, #v.units do
    if v.units[i].name == unit then return v.units[i][which] end
  end
  return 0
end

local function statedwait(v)
  local wait = 0
  for i = 1, #v.stated do
    local s = v.stated[i]
    local c = cost(v, s.unit, 'first')
    if c > 0 and s.remaining < c then wait = max(wait, s.ends - now) end
  end
  return wait
end

local function waitof(v)
  local wait, limit = max(0, v.pause - now, statedwait(v)), -1
  for i = 1, #v.limits do
    local l = v.limits[i]
    if l.unit.first > 0 then
      local w = limitwait(v, l, l.unit.first)
      if w < 0 then return -1, i - 1 end
      if w > wait then wait, limit = w, i - 1 end
    end
  end
  return wait, limit
end

local function fitsall(v)
  if v.pause > now then return false end
  for i = 1, #v.limits do
    local l = v.limits[i]
    local first, all = l.unit.first, l.unit.all
    if all == 0 then
    elseif l.kind == 'm' then
      if used(v, l, first) + all > l.size + l.tol then return false end
    elseif all > l.size then return false
    elseif l.kind == 'c' then
      if l.level + all > l.size then return false end
    elseif logwait(l, all) > 0 then return false end
  end
  for i = 1, #v.stated do
    if cost(v, v.stated[i].unit, 'all') > v.stated[i].remaining then return false end
  end
  return true
end

local function firstfits(views, maxwait)
  local wait, draw, limit = 0, -1, -1
  for k = 1, #views do
    local w, i = waitof(views[k])
    if w < 0 then return 3, 0, k - 1, i end
    if w > wait then wait, draw, limit = w, k - 1, i end
  end
  local outcome = 1
  if wait > maxwait or (#views > 1 and wait > 0) then outcome = 0 end
  for k = 1, #views do
    local longer = statedwait(views[k])
    for i = 1, #views[k].limits do
      local l = views[k].limits[i]
      if l.kind == 'c' and l.unit.first > 0 and now + wait >= l.ends then
        longer = max(longer, l.ends - now)
      end
    end
    if longer > 0 then wait, outcome = max(wait, longer), 0 end
  end
  return outcome, wait, draw, limit
end
`

const luaCharge = `
local function chargelog(l, c, ready)
  local last = l.es[#l.es]
  if last then ready = max(ready, last[1]) end
  if last and (last[1] == ready or (l.grain > 0 and floor(last[1] / l.grain) == floor(ready / l.grain))) then
    last[1], last[2] = ready, last[2] + c
  else
    l.es[#l.es + 1] = {ready, c}
  end
end

local function chargelimit(v, l, first, c, ready)
  if c == 0 then return end
  if l.kind == 'm' then l.level = max(used(v, l, first), l.rate * (ready - now)) + c
  elseif l.kind == 'c' then l.level = l.level + c
  else chargelog(l, c, ready) end
end

local function charge(v, ready, all)
  if #v.limits == 0 and #v.stated == 0 and v.pause <= now then
    v.merged = false
    return
  end
  if v.gen == 0 then v.gen = newgen() end
  v.at, v.merged = now, false
  local expires = now + 1000000
  local set = {'HSET', v.key, 't', int(now), 'g', int(v.gen)}
  for i = 1, #v.limits do
    local l = v.limits[i]
    chargelimit(v, l, l.unit.first, all and l.unit.all or l.unit.first, ready)
    local field, value, idle = l.kind .. l.id, nil, now
    if l.kind == 'm' then
      value = format('%.17g', l.level)
      idle = now + ceilwait(max(0, l.level + max(0, l.credit)), l.rate)
    elseif l.kind == 'c' then
      value, idle = format('%.17g %.0f', l.level, l.ends), l.ends
    else
      value = packed(l.es)
      if #l.es > 0 then idle = l.es[#l.es][1] + l.per end
    end
    set[#set + 1] = field
    set[#set + 1] = value
    expires = max(expires, idle + 1000000)
  end
  for i = 1, #v.stated do
    local s = v.stated[i]
    s.remaining = max(0, s.remaining - cost(v, s.unit, all and 'all' or 'first'))
    set[#set + 1] = s.field
    set[#set + 1] = format('%.17g %.0f', s.remaining, s.ends)
    expires = max(expires, s.ends + 1000000)
  end
  if v.pause > now then
    set[#set + 1] = 'p'
    set[#set + 1] = int(v.pause)
    expires = max(expires, v.pause + 60000000)
  else
    v.pause = 0
    if v.f.p then v.gone[#v.gone + 1] = 'p' end
  end
  redis.call(unpack(set))
  if #v.gone > 0 then redis.call('HDEL', v.key, unpack(v.gone)) end
  redis.call('PEXPIRE', v.key, int(ceil((expires - now) / 1000)))
end
`

const luaRefund = luaCommon + `
local key, gen, ready = KEYS[1], num(), num()
local old = redis.call('HMGET', key, 'g', 't')
if tonumber(old[1]) ~= gen or gen == 0 then return 0 end
local at = tonumber(old[2]) or 0
for i = 1, num() do
  local kind, id, units, a = str(), str(), num(), num()
  local field = kind .. id
  local value = redis.call('HGET', key, field)
  if value and units > 0 then
    if kind == 'm' then
      local level = tonumber(value) or 0
      local drained = level - a * max(0, now - at)
      redis.call('HSET', key, field, format('%.17g', level - min(units, max(0, drained))))
    elseif kind == 'c' then
      local level, ends = pair(value)
      if ready < ends and ready >= ends - a then
        redis.call('HSET', key, field, format('%.17g %.0f', max(0, level - units), ends))
      end
    else
      local es = {}
      for t, n in string.gmatch(value, '(%S+) (%S+)') do es[#es + 1] = {tonumber(t) or 0, tonumber(n) or 0} end
      for j = 1, #es do
        if es[j][1] >= ready then
          es[j][2] = max(0, es[j][2] - units)
          break
        end
      end
      redis.call('HSET', key, field, packed(es))
    end
  end
end
return 1
`

const luaTell = luaCommon + `
local key, pause = KEYS[1], num()
local raw = redis.call('HGETALL', key)
local f, stated, set = {}, {}, {}
for i = 1, #raw, 2 do
  f[raw[i]] = raw[i + 1]
  if string.match(raw[i], '^s%d+:') then stated[#stated + 1] = raw[i] end
end
if not f.g then
  set = {'g', int(newgen()), 't', int(now)}
end
local at = max(now, tonumber(f.t) or 0)
local expires = at + 1000000
local gone = {}
if pause < 0 then
  if f.p then gone = {'p'} end
elseif pause > 0 then
  local p = max(tonumber(f.p) or 0, at + pause)
  set[#set + 1] = 'p'
  set[#set + 1] = int(p)
  expires = max(expires, p + 60000000)
end
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
if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
if #set > 0 then redis.call('HSET', key, unpack(set)) end
local left = ceil((expires - now) / 1000)
if redis.call('PTTL', key) < left then redis.call('PEXPIRE', key, int(left)) end
return 1
`
