package redisstore

// luaView reads a key as it stands now, for one draw.
const luaView = `
local function total(l)
  local sum = 0
  for i = 1, #l.es do sum = sum + l.es[i][2] end
  return sum
end

-- movecalendar and movelog let units of an earlier booking count from
-- another time.
local function movecalendar(v, l, starts)
  for i = 1, #v.moved do
    local m = v.moved[i]
    local units = m.units[l.unit.i]
    if m.to >= starts and not (m.gen == v.gen and m.from >= starts) then l.level = l.level + units end
  end
end

local function movelog(v, l)
  for i = 1, #v.moved do
    local m = v.moved[i]
    local units, es = m.units[l.unit.i], l.es
    if units > 0 and m.gen == v.gen then takeunits(es, l.grain, m.from, units) end
    if units > 0 and m.to + l.per > now then
      local j = 1
      while j <= #es and es[j][1] < m.to do j = j + 1 end
      if es[j] and together(l.grain, es[j][1], m.to) then es[j][2] = es[j][2] + units
      elseif es[j - 1] and together(l.grain, es[j - 1][1], m.to) then es[j - 1] = {m.to, es[j - 1][2] + units}
      else table.insert(es, j, {m.to, units}) end
    end
  end
end

local function readlimit(v, lost, age, back, ahead)
  local field = str()
  local l = {field = field, kind = sub(field, 1, 1), unit = v.units[num()], size = num(), tol = 0, rate = 0, credit = 0, level = 0, text = false}
  l.tol = 1e-9 + l.size * 1e-12
  local old, seen, more = v.f[field], nil, 0
  if old then v.others = v.others - 1 end
  if l.kind == 'm' then
    l.rate, l.credit = num(), num()
    local most = l.size + max(0, l.credit) + l.rate * 3600000000
    local level, _, at = meter(old, v.at)
    l.level = max(-max(0, l.credit), (level or -max(0, l.credit)) - l.rate * max(0, now - (at - back)))
    if v.seengen ~= 0 then seen = num() end
    if lost and seen and seen <= most and seen - l.rate * age > l.level then
      more = seen - l.rate * age - max(0, l.level)
      l.level = seen - l.rate * age
    end
  elseif l.kind == 'c' then
    local per, ends = num(), num()
    ends = ends + (floor((now - ends) / per) + 1) * per
    l.level, l.ends = pair(old)
    if l.ends < ends then l.level, l.ends = 0, ends
    elseif l.ends > ends + per then l.ends = ends end
    if v.seengen ~= 0 then seen = num() end
    if lost and seen and now - age >= l.ends - per and min(seen, l.size) > l.level then
      more = min(seen, l.size) - l.level
      l.level = min(seen, l.size)
    end
    movecalendar(v, l, l.ends - per)
  else
    l.per, l.grain = num(), num()
    l.es = entries(old, l.per, back)
    if v.seengen ~= 0 then seen = num() end
    if lost and seen then
      local missing, at, i = min(seen, l.size) - total(l), min(now - age, v.seenat + ahead + 1000000), 1
      if missing > 0 and at + l.per > now then
        while i <= #l.es and l.es[i][1] <= at do i = i + 1 end
        table.insert(l.es, i, {at, missing})
        more = missing
      end
    end
    movelog(v, l)
  end
  v.raised = v.raised or more > l.tol
  v.lacked = v.lacked or more >= 1
  return l
end

-- undrawn are the fields of limits that the draw does not name, and what they
-- become: others of the key draw on them. false: they are over.
local function undrawn(v, raw, back)
  if v.others == 0 then return {} end
  local named, others = {}, {}
  for i = 1, #v.limits do named[v.limits[i].field] = true end
  for i = 1, #raw, 2 do
    local field, value, kind = raw[i], raw[i + 1], match(raw[i], '^[mlc]')
    if kind and not named[field] then
      local idle = now
      if kind == 'm' then
        local level, rest, at = meter(value, v.at)
        idle = at - back + rest
        value = format('%.17g %.0f %.0f', level or 0, rest, at - back)
      elseif kind == 'l' then
        local es, per = entries(value, nil, back), rest(value)
        if #es > 0 then idle = es[#es][1] + per end
        if back ~= 0 then value = packed(es, per) end
      else
        local _, ends = pair(value)
        idle = ends
      end
      if idle + 1000000 <= now then value = false end
      others[#others + 1] = {field = field, value = value, idle = idle}
    end
  end
  return others
end

local function shifted(at, back)
  if at == 0 then return 0 end
  return max(0, at - back)
end

local function view(key)
  local raw = raw or redis.call('HGETALL', key)
  local f, limits, stated = {}, 0, false
  for i = 1, #raw, 2 do
    local field = raw[i]
    local kind = byte(field)
    f[field] = raw[i + 1]
    if kind == 115 then stated = true -- s
    elseif kind == 109 or kind == 108 or kind == 99 then limits = limits + 1 end -- m, l, c
  end
  local v = {
    key = key, f = f, gen = tonumber(f.g) or 0, at = tonumber(f.t) or 0, pause = tonumber(f.p) or 0, guess = tonumber(f.q) or 0,
    units = {}, limits = {}, stated = {}, gone = {}, moved = {}, others = limits,
    seengen = 0, seenat = 0, back = 0, heals = 0, raised = false, lacked = false, fresh = false, merged = false,
  }
  for i = 1, num() do
    local name, first, all = str(), num(), num()
    v.units[i] = {i = i, name = name, none = 0, first = first, all = all}
  end
  v.seengen = num()
  local age, paused, lost, back, ahead = 0, 0, false, max(0, v.at - now), 0
  if v.seengen ~= 0 then
    v.seenat, age, paused = num(), num(), num()
    lost = v.seengen ~= v.gen or v.seenat > v.at
    local clock = num()
    if clock ~= 0 and now - clock > 1000000 then ahead = now - clock end
    if v.gen ~= 0 and v.at <= clock + 500000 then back = back - ahead end
  end
  v.back = back
  v.pause, v.guess = shifted(v.pause, back), shifted(v.guess, back)
  for i = 1, stated and #raw or 0, 2 do
    local n, rest = match(raw[i], '^s(%d+):(.*)$')
    if n then
      local remaining, ends = pair(raw[i + 1])
      if ends - back > now then
        v.stated[#v.stated + 1] = {field = raw[i], unit = sub(rest, 1, tonumber(n)), remaining = remaining, ends = ends - back}
      else
        v.gone[#v.gone + 1] = raw[i]
      end
    end
  end
  local was = v.gen
  local older = restored(was) or (lost and v.seengen == was)
  if back ~= 0 or older then v.gen = newgen() end
  for i = 1, num() do
    local m = {gen = num(), from = num(), to = now - num(), units = {}}
    for j = 1, #v.units do m.units[j] = num() end
    v.moved[i] = m
  end
  for i = 1, num() do v.limits[i] = readlimit(v, lost, age, back, ahead) end
  v.others = undrawn(v, raw, back)
  v.heals = min(shifted(tonumber(f.h) or 0, back), now + 1000000)
  if v.heals <= now then v.heals = 0 end
  v.fresh = #v.limits > 0 and (older or (v.raised and was == 0) or (v.lacked and v.seengen ~= was and v.heals == 0))
  if v.fresh then v.heals = now + 1000000 end
  v.merged = lost
  if lost and paused > age then v.pause = max(v.pause, now + paused - age) end
  return v
end
`
