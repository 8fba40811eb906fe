package redisstore

// luaWait finds out when a draw has room.
const luaWait = `
local function paused(v) return max(v.pause, v.guess) end

local function used(v, l, first)
  local u, pause = max(0, l.level), paused(v)
  if pause > 0 then u = max(u, max(0, l.size - first) + l.rate * (pause - now)) end
  return u
end

local function idled(v, l)
  local pause = paused(v)
  if pause == 0 then return l.level end
  return max(l.level, l.rate * (pause - now))
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
  if v.guess - now > wait then wait, limit = v.guess - now, -2 end
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
  if paused(v) > now or v.heals > now then return false end
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
    if views[k].heals > now then
      outcome = 0
      if views[k].heals - now > wait then wait, draw, limit = views[k].heals - now, k - 1, -1 end
    end
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
