package redisstore

// The scripts say in Lua what store.Ledger says in Go, with the same
// operations on doubles in the same order; the tests compare the two. A key is
// a hash:
//
//	g        names its state, see store.Standing
//	t        when it was last written, microseconds of the server's clock
//	p        nothing starts before; absent: no pause
//	q        nor before this, which somebody guessed; absent: likewise
//	h        nothing is charged before, see store.Ledger; absent: it may be
//	m<id>    meter: "level rest", or "level rest at" if it is as of another time than t
//	l<id>    log: "at units at units ... rest", oldest first
//	c<id>    calendar: "used ends"
//	s<n>:<unit><id>  stated quota, n the length of unit: "remaining ends"
//
// The rest is for how long after its time, or its last entry, a limit is in use:
// from then on it is as good as new.
//
// Only what is given in KEYS is touched, so Cluster and proxies can route.
// Instants are below 2^53 and never pass through tostring, which keeps 14
// digits.

// luaTime reads the clock, and says how to find out which run of the server this is.
const luaTime = `
local ARGV, tonumber, redis, string, math = ARGV, tonumber, redis, string, math
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- A run of the server is known by its replication ID, which changes with every
-- start and promotion. Who may not ask, or is not answered, cannot tell.
local era
local function askera()
  local info = redis.pcall('INFO', 'replication')
  local at = type(info) == 'string' and string.find(info, 'master_replid:', 1, true)
  local id = at and string.sub(info, at + 14, at + 16)
  return id and tonumber(id, 16) or 0
end
`

// luaNow reads the clock and finds out which run of the server this is.
const luaNow = luaTime + luaEra

const luaEra = `
era = era or askera()
`

const luaCommon = `
local max, min, floor, ceil = math.max, math.min, math.floor, math.ceil
local format, match, sub, byte = string.format, string.match, string.sub, string.byte
local function restored(gen) return gen ~= 0 and floor(gen / 524288) ~= era end
local function int(n) return format('%.0f', n) end
local arg = 0
local function str() arg = arg + 1 return ARGV[arg] end
local function num() arg = arg + 1 return tonumber(ARGV[arg]) end
local function newgen() return era * 524288 + max(1, now % 524288) end
local function pair(s)
  local a, b = match(s or '', '^(%S+) (%S+)')
  return tonumber(a) or 0, tonumber(b) or 0
end
-- entries are those of a log that are in the window of length per; all if it is nil.
local function entries(s, per, back)
  local es = {}
  for a, b in string.gmatch(s or '', '(%S+) (%S+)') do
    local t, n = (tonumber(a) or 0) - back, tonumber(b) or 0
    if not per or (t + per > now and n > 0) then es[#es + 1] = {t, n} end
  end
  return es
end
local function together(grain, a, b)
  return a == b or (grain > 0 and floor(a / grain) == floor(b / grain))
end
local function takeunits(es, grain, at, units)
  for i = 1, #es do
    if es[i][1] >= at and together(grain, es[i][1], at) then
      es[i][2] = max(0, es[i][2] - units)
      return
    end
  end
end
local function meter(s, written)
  local level, rest, at = match(s or '', '^(%S+) (%S+) ?(%S*)$')
  return tonumber(level), tonumber(rest) or 0, tonumber(at) or written
end
local function rest(s) return tonumber(match(s, '(%S+)$')) or 0 end
local function packed(es, rest)
  local s = {}
  for i = 1, #es do s[i] = format('%.0f %.17g', es[i][1], es[i][2]) end
  s[#s + 1] = int(rest)
  return table.concat(s, ' ')
end
`

const luaBook = luaTime + luaUsual + luaEra + luaCommon + luaView + luaWait + luaCharge + `
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
-- A refusal writes what a step of the clock changed, and what only the caller
-- remembers.
local which = ({[0] = 'none', 'first', 'all'})[outcome]
local write = outcome == 1 or outcome == 2
for k = 1, #views do
  local v = views[k]
  write = write or (outcome == 0 and (v.back ~= 0 or ((v.merged or v.fresh) and not empty(v))))
end
local reply = {outcome, wait, now, draw, limit}
for k = 1, #views do
  local v = views[k]
  if write then charge(v, now + wait, which) end
  reply[#reply + 1] = int(v.merged and v.seengen or v.gen)
  reply[#reply + 1] = v.written or int(v.merged and v.seenat or v.at)
  reply[#reply + 1] = v.pause > now and int(v.pause - now) or '0'
  for i = 1, #v.limits do
    local l = v.limits[i]
    reply[#reply + 1] = l.text or format('%.17g', l.kind == 'l' and total(l) or l.level)
  end
end
return reply
`
