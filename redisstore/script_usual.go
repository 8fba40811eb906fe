package redisstore

// luaUsual is the usual booking in short: of one unit from one key, which has the
// meters that are asked for and nothing else, is not to be healed, and has room for
// all of the batch. It answers what the rest of the script would, in less than half
// of the time, as it makes none of the rest's functions and tables. Whatever is not
// usual it leaves to the rest, and has written nothing.
//
// The fields stand in the order in which the rest writes them. The reply is
// "at gen" and "level rest" of each limit.
const luaUsual = `
local raw -- of the only key, if it has been read
local function usual()
  local key, all, i = KEYS[1], ARGV[6] + 0, 8
  if #KEYS > 1 or ARGV[2] ~= '0' or ARGV[3] ~= '1' or all == 0 then return end
  local seen = ARGV[7] ~= '0'
  if seen then i = 12 end
  local n = ARGV[i + 1] + 0
  if n == 0 or ARGV[i] ~= '0' then return end
  raw = redis.call('HGETALL', key)
  if raw[1] ~= 't' or raw[3] ~= 'g' or #raw ~= 4 + 2 * n then return end
  local at, gen = tonumber(raw[2]), tonumber(raw[4])
  if not at or at > now or not gen then return end
  local written, clock = seen and ARGV[8] + 0, seen and ARGV[11] + 0
  if seen and clock ~= 0 and now - clock > 1000000 then return end
  if seen and (ARGV[7] ~= raw[4] or written > at) then return end
  -- Where the caller itself wrote last, 2 ms ago at most, no other server has taken
  -- over: connections to it would take longer to make.
  if not (written == at and now > at and now - at < 2000) then
    era = askera()
    if math.floor(gen / 524288) ~= era then return end
  end
  local format, match, longest, was, us = string.format, string.match, 0, 0, time[2]
  written = time[1] .. string.sub('000000', #us + 1) .. us
  local set, reply = {'HSET', key, 't', written, '', ''}, written .. ' ' .. raw[4]
  for k = 5, #raw, 2 do
    i = i + 2
    local field, size, rate, credit = ARGV[i], ARGV[i + 2] + 0, ARGV[i + 3] + 0, ARGV[i + 4] + 0
    local text, old = match(raw[k + 1], '^(%S+) (%S+)$')
    local level = raw[k] == field and tonumber(text)
    if not level or string.byte(field) ~= 109 then return end -- m
    level = level - rate * (now - at)
    if level < 0 then level = 0 end
    level = level + all
    if level > size + (1e-9 + size * 1e-12) then return end
    local rest = level
    if credit > 0 then rest = level + credit end
    rest = math.ceil(math.min(rest / rate, 34560000000000))
    if rest > longest then longest = rest end
    old = tonumber(old)
    if old > was then was = old end
    local value = format('%.17g %.0f', level, rest)
    set[k], set[k + 1] = field, value
    reply = reply .. ' ' .. value
    i = i + (seen and 4 or 3)
  end
  redis.call(unpack(set))
  -- Most often it expires in the same quarter of a second as by the last booking.
  local expires = math.ceil((now + longest) / 250000) * 250000 + 1000000
  if expires ~= math.ceil((at + was) / 250000) * 250000 + 1000000 then
    redis.call('PEXPIRE', KEYS[1], format('%.0f', math.ceil((expires - now) / 1000)))
  end
  return reply
end
local booked = usual()
if booked then return booked end
`
