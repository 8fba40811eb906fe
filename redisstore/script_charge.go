package redisstore

// luaCharge writes what a booking takes.
const luaCharge = `
local function chargelog(l, c, ready)
  local last = l.es[#l.es]
  if last then ready = max(ready, last[1]) end
  if last and together(l.grain, last[1], ready) then
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

local function empty(v)
  return #v.limits == 0 and #v.stated == 0 and paused(v) <= now
end

local function charge(v, ready, which)
  if empty(v) then
    v.merged = false
    return
  end
  if v.gen == 0 then v.gen = newgen() end
  v.merged, v.written = false, int(now)
  local expires = max(now, v.heals) + 1000000
  local set = {'HSET', v.key, 't', v.written}
  if v.gen ~= tonumber(v.f.g) then
    set[5], set[6] = 'g', int(v.gen)
  end
  for i = 1, #v.limits do
    local l = v.limits[i]
    chargelimit(v, l, l.unit.first, l.unit[which], ready)
    local value, idle
    if l.kind == 'm' then
      local rest = ceilwait(max(0, l.level + max(0, l.credit)), l.rate)
      l.text = format('%.17g', l.level)
      value, idle = l.text .. ' ' .. int(rest), now + rest
    elseif l.kind == 'c' then
      value, idle = format('%.17g %.0f', l.level, l.ends), l.ends
    else
      idle = #l.es > 0 and l.es[#l.es][1] + l.per or now
      value = packed(l.es, l.per)
    end
    set[#set + 1] = l.field
    set[#set + 1] = value
    expires = max(expires, idle + 1000000)
  end
  for i = 1, #v.others do
    local o = v.others[i]
    if not o.value then v.gone[#v.gone + 1] = o.field
    else
      if o.value ~= v.f[o.field] then
        set[#set + 1] = o.field
        set[#set + 1] = o.value
      end
      expires = max(expires, o.idle + 1000000)
    end
  end
  for i = 1, #v.stated do
    local s = v.stated[i]
    s.remaining = max(0, s.remaining - cost(v, s.unit, which))
    set[#set + 1] = s.field
    set[#set + 1] = format('%.17g %.0f', s.remaining, s.ends)
    expires = max(expires, s.ends + 1000000)
  end
  if paused(v) > now then expires = max(expires, paused(v) + 60000000) end
  if v.pause > now then
    set[#set + 1] = 'p'
    set[#set + 1] = int(v.pause)
  else
    v.pause = 0
    if v.f.p then v.gone[#v.gone + 1] = 'p' end
  end
  if v.guess > now then
    set[#set + 1] = 'q'
    set[#set + 1] = int(v.guess)
  else
    v.guess = 0
    if v.f.q then v.gone[#v.gone + 1] = 'q' end
  end
  if v.heals > 0 then
    set[#set + 1] = 'h'
    set[#set + 1] = int(v.heals)
  elseif v.f.h then
    v.gone[#v.gone + 1] = 'h'
  end
  redis.call(unpack(set))
  if #v.gone > 0 then redis.call('HDEL', v.key, unpack(v.gone)) end
  expires = ceil(expires / 250000) * 250000
  redis.call('PEXPIRE', v.key, int(ceil((expires - now) / 1000)))
end
`
