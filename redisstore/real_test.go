package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
	"github.com/weirhttp/weir/throttle/storetest"
)

// standing opens a store on a real server whose scripts read their time from a
// key and note expiries in a hash, so that the clock stands still but for
// Advance. All else is what runs in production.
func standing(t testing.TB, s *server) storetest.Setup {
	t.Helper()
	ctx := context.Background()
	client := s.client(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tick := redis.NewScript(`
		redis.call('HSET', 'clock', 's', ARGV[1], 'us', ARGV[2])
		local now, ends = ARGV[1] * 1000000 + ARGV[2], redis.call('HGETALL', 'ttl')
		for i = 1, #ends, 2 do
			if tonumber(ends[i + 1]) <= now then
				redis.call('DEL', ends[i])
				redis.call('HDEL', 'ttl', ends[i])
			end
		end
		return 1`)
	era := int64(7)
	set := func() {
		if err := client.HSet(ctx, "clock", "era", era).Err(); err != nil {
			t.Fatal(err)
		}
		if err := tick.Run(ctx, client, nil, now.Unix(), now.Nanosecond()/1000).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	set()
	var stores []store.Store
	for range 2 {
		st := s.store(t)
		st.book, st.refund, st.tell = standingScript(t, st.book), standingScript(t, st.refund), standingScript(t, st.tell)
		stores = append(stores, st)
	}
	return storetest.Setup{
		Stores: stores,
		Back:   true,
		Now:    func() time.Time { return now },
		Lose: func() {
			if err := client.FlushAll(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			era++
			set()
		},
		Save: func() func() {
			saved := dump(t, client)
			return func() {
				if err := client.FlushAll(ctx).Err(); err != nil {
					t.Fatal(err)
				}
				for key, value := range saved {
					if err := client.Restore(ctx, key, 0, value).Err(); err != nil {
						t.Fatal(err)
					}
				}
				era++
				set()
			}
		},
		Era: func() int64 { return era },
		Advance: func(d time.Duration) {
			now = now.Add(d)
			set()
		},
	}
}

// dump is all keys but the clock.
func dump(t testing.TB, c *redis.Client) map[string]string {
	t.Helper()
	keys, err := c.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	saved := make(map[string]string)
	for _, key := range keys {
		if saved[key], err = c.Dump(context.Background(), key).Result(); err != nil {
			t.Fatal(err)
		}
	}
	delete(saved, "clock")
	return saved
}

// standingScript reads time from where standing puts it.
func standingScript(t testing.TB, sc script) script {
	t.Helper()
	source := sc.source
	for from, to := range map[string]string{
		"redis.call('TIME')":                  "redis.call('HMGET', 'clock', 's', 'us')",
		"return id and tonumber(id, 16) or 0": "return tonumber(redis.call('HGET', 'clock', 'era') or 0)",
		"now - at < 2000":                     "false", // here no time passes while a server takes over
		"redis.call('PEXPIRE', key,":          "redis.call('HSET', 'ttl', key,",
		"redis.call('PEXPIRE', v.key, int(ceil((expires - now) / 1000)))":                   "redis.call('HSET', 'ttl', v.key, int(expires))",
		"redis.call('PEXPIRE', KEYS[1], format('%.0f', math.ceil((expires - now) / 1000)))": "redis.call('HSET', 'ttl', KEYS[1], format('%.0f', expires))",
		"local left = ceil((expires - now) / 1000)":                                         "local left = expires",
		"redis.call('PTTL', key)":                                                           "tonumber(redis.call('HGET', 'ttl', key) or 0)",
	} {
		source = strings.ReplaceAll(source, from, to)
	}
	if strings.Contains(source, "'TIME'") || strings.Contains(source, "'PEXPIRE'") || strings.Contains(source, "'PTTL'") {
		t.Fatal("the script's clock was not replaced everywhere")
	}
	return newScript(source)
}

func TestRealServerKeepsTheContract(t *testing.T) {
	s := startServer(t)
	storetest.Run(t, func(t *testing.T) storetest.Setup { return standing(t, s) })
}

// TestRealScriptIsTheLedger is the differential test: 100000 steps on the Lua
// of a real server.
func TestRealScriptIsTheLedger(t *testing.T) {
	set := standing(t, startServer(t))
	for seed := range uint64(25) {
		if err := storetest.Histories(context.Background(), set, 100+seed, 4000); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBrokenScriptsAreCaught takes one thing out of the scripts at a time.
func TestBrokenScriptsAreCaught(t *testing.T) {
	server := startServer(t)
	for name, tc := range map[string]struct{ from, to string }{
		"no charge of a meter":    {"max(used(v, l, first), l.rate * (ready - now)) + c", "l.level"},
		"no charge of a log":      {"l.es[#l.es + 1] = {ready, c}", ""},
		"no write at all":         {"redis.call(unpack(set))", ""},
		"no time of the meters":   {"v.merged, v.written = false, int(now)", "v.merged, v.written = false, v.f.t or int(now)"},
		"fourteen digits":         {"l.text = format('%.17g", "l.text = format('%.6g"},
		"others' time forgotten":  {"max(0, now - (at - back))", "max(0, now - v.at)"},
		"others' end forgotten":   {"expires = max(expires, o.idle + 1000000)", ""},
		"others do not step back": {"if back ~= 0 then value = packed(es, per) end", ""},
		"steps ahead unnoticed":   {"then ahead = now - clock end", "then end"},
		"steps ahead twice":       {"and v.at <= clock + 500000 then", "then"},
		"usual: steps ahead":      {"if seen and clock ~= 0 and now - clock > 1000000 then return end", ""},
		"charge on refusal":       {"local write = outcome == 1 or outcome == 2", "local write = outcome < 3\nif outcome == 0 then which = 'first' end"},
		"books ahead on two":      {"(#views > 1 and wait > 0)", "false"},
		"pause is not kept":       {"set[#set + 1] = 'p'\n    set[#set + 1] = int(v.pause)", "redis.call('HDEL', v.key, 'p')"},
		"stated not charged":      {"s.remaining = max(0, s.remaining - cost(v, s.unit, which))", ""},
		"hints ignored":           {"lost = v.seengen ~= v.gen or v.seenat > v.at", "lost = false"},
		"charged before healed":   {"or v.heals > now then return false", "then return false"},
		"newcomers unnoticed":     {"or (v.lacked and v.seengen ~= was and v.heals == 0)", ""},
		"restored unnoticed":      {"local function restored(gen) return gen ~= 0", "local function restored(gen) return false"},
		"calendar never turns":    {"l.level, l.ends = 0, ends", "l.ends = ends"},
		"usual: no charge":        {"level = level + all", ""},
		"usual: no limit":         {"if level > size + (1e-9 + size * 1e-12) then return end", ""},
		"usual: never drains":     {"level = level - rate * (now - at)", ""},
		"usual: no time":          {"{'HSET', key, 't', written,", "{'HSET', key, 't', raw[2],"},
		"usual: expires early":    {"if rest > longest then longest = rest end", ""},
		"usual: never renewed":    {"if expires ~= ", "if at == 0 and expires ~= "},
		"usual: restored":         {"if math.floor(gen / 524288) ~= era then return end", ""},
		"usual: hints ignored":    {"if seen and (ARGV[7] ~= raw[4] or written > at) then return end", ""},
		"usual: clock steps back": {"or at > now or not gen", "or not gen"},
		"usual: others' fields":   {" or #raw ~= 4 + 2 * n then", " or #raw < 4 + 2 * n then"},
		"usual: forced":           {"if #KEYS > 1 or ARGV[2] ~= '0' or", "if #KEYS > 1 or"},
		"usual: one key of two":   {"if #KEYS > 1 or ARGV[2]", "if ARGV[2]"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(luaBook, tc.from, tc.to, 1)
			if broken == luaBook {
				t.Fatalf("the script does not contain %q", tc.from)
			}
			setup := func() storetest.Setup {
				set := standing(t, server)
				for _, s := range set.Stores {
					s.(*Store).book = standingScript(t, newScript(broken))
				}
				return set
			}
			err := storetest.Test(setup)
			for seed := uint64(0); err == nil && seed < 3; seed++ {
				err = storetest.Histories(t.Context(), setup(), 300+seed, 4000)
			}
			if err == nil {
				t.Error("the conformance suite did not notice")
			}
		})
	}
}

func TestScriptsAreFoundAgainAfterAFlush(t *testing.T) {
	s := startServer(t)
	st := s.store(t)
	b := request("k", 1, meterLimit(3, 0.001))
	for i := range 3 {
		if _, err := st.Book(context.Background(), b); err != nil {
			t.Fatalf("book %d: %v", i, err)
		}
		if err := s.client(t).ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	r, err := st.Book(context.Background(), b)
	if err != nil || r.Outcome != store.Refused {
		t.Errorf("got outcome %d, %v after 3 of 3, want a refusal", r.Outcome, err)
	}
}

func meterLimit(size, rate float64) store.Limit {
	return store.Limit{ID: "1s", Kind: store.MeterLimit, Size: size, Rate: rate}
}

func request(key string, n int64, ls ...store.Limit) store.Booking {
	return store.Booking{Draws: []store.Draw{{Key: key, Limits: ls, Units: []store.UnitCost{{Unit: "requests", First: n, All: n}}}}}
}

// TestNothingIsRetried blocks the server until the call's deadline: go-redis
// would run the script three more times.
func TestNothingIsRetried(t *testing.T) {
	s := startServer(t)
	st := s.store(t, func(o *redis.Options) { o.MaxRetries = 3 })
	ctx := context.Background()
	b := request("k", 1, meterLimit(100, 0.001))
	if _, err := st.Book(ctx, b); err != nil {
		t.Fatal(err)
	}
	before := s.stat(t, "commandstats", "cmdstat_evalsha:calls")
	block := s.client(t)
	if err := block.Do(ctx, "client", "pause", patience.Milliseconds(), "WRITE").Err(); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := st.Book(short, b); err == nil {
		t.Fatal("a blocked server answered")
	}
	if d := time.Since(begin); d > patience/2 {
		t.Errorf("the call took %v with a deadline of 50 ms, the server was silent for %v", d, patience)
	}
	if err := block.Do(ctx, "client", "unpause").Err(); err != nil {
		t.Fatal(err)
	}
	if n := s.stat(t, "commandstats", "cmdstat_evalsha:calls") - before; n > 1 {
		t.Errorf("one call ran the script %v times", n)
	}
}
