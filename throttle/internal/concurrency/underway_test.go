package concurrency_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const begin = meter.Instant(time.Hour)

// full is a limit with so many requests under way as it lets through, and since when
// they are.
func full(t *testing.T, f *concurrency.Limit, n int) (since []uint32) {
	t.Helper()
	for i := range n {
		if f.Opens(begin) != begin {
			t.Fatalf("only %d may go", i)
		}
		since = append(since, f.Start(begin))
	}
	if f.Opens(begin) == begin || f.Roomy(begin) {
		t.Fatalf("more than %d may go", n)
	}
	return since
}

// wait is until when nobody else goes if none of those under way ends.
func wait(f *concurrency.Limit) time.Duration {
	now := begin
	for f.Opens(now) > now {
		now = f.Opens(now)
	}
	return now.Until(begin)
}

// TestWhatWasAcceptedCountsNoMore: after three quarters of a second where nothing was
// answered yet, and after a second where it was, however slowly.
func TestWhatWasAcceptedCountsNoMore(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     concurrency.Limit
		quick time.Duration // of an answer; zero: there was none
		want  time.Duration
	}{
		{"nothing was answered", concurrency.Limit{}, 0, 750 * time.Millisecond},
		{"quickly", concurrency.Limit{}, 10 * time.Millisecond, time.Second},
		{"slowly", concurrency.Limit{}, 900 * time.Millisecond, time.Second},
		{"slowly, by the host", concurrency.Host(), 100 * time.Millisecond, time.Second},
	} {
		const n = 4
		f := test.f
		if test.quick > 0 {
			f.End(f.Start(begin))
			f.Answered(begin, test.quick)
		}
		gens := full(t, &f, n)
		if got := wait(&f); got != test.want {
			t.Errorf("%s: the next goes after %v, want %v", test.name, got, test.want)
		}
		if f.UnderWay() != n {
			t.Errorf("%s: %d are under way", test.name, f.UnderWay())
		}
		last := begin.Add(test.want)
		for at := f.Opens(last); at.Sub(begin) < test.want+200*time.Millisecond; at = f.Opens(at) {
			f.Start(at)
			last = at
		}
		if took := last.Sub(begin) - test.want; test.quick > 0 && took > 0 || test.quick == 0 && (took < 130*time.Millisecond || took > 150*time.Millisecond) {
			t.Errorf("%s: it takes %v until they have gone", test.name, took)
		}
		if got := f.UnderWay(); got != n+n+4*n { // for each that was accepted, as it seems, four more
			t.Errorf("%s: %d are under way then", test.name, got)
		}
		was := f.UnderWay()
		for _, g := range gens {
			f.End(g)
		}
		if f.UnderWay() != was-n {
			t.Errorf("%s: %d of them ended, and %d are under way", test.name, n, f.UnderWay())
		}
	}
}

// TestALossCountsThoseThatWereForgotten: once a request was lost, those that took long
// did matter, count again and for twice as long. One more may soon go beside them.
func TestALossCountsThoseThatWereForgotten(t *testing.T) {
	var f concurrency.Limit
	full(t, &f, 4)
	late := begin.Add(wait(&f))
	if f.Silent() != true {
		t.Error("four were accepted, as it seems, and none was answered")
	}
	f.Lost(late, 0)
	if f.Roomy(late) || f.Counted(late) != 4 || !f.Cut() || f.Silent() {
		t.Errorf("room %t, %d count, cut %t", f.Roomy(late), f.Counted(late), f.Cut())
	}
	if more := f.Opens(late); more.Until(late) != 750*time.Millisecond {
		t.Errorf("one more may go after %v", more.Until(late))
	}
	f.Start(late)
	now := late
	for !f.Roomy(now) {
		now = f.Opens(now)
	}
	if got := now.Until(late); got < 375*time.Millisecond || got > 1500*time.Millisecond {
		t.Errorf("they count for %v more", got)
	}
}

// TestWhatTakesFarLongerCountsNoMoreAfterALoss: sixteen times as long as a quick answer.
func TestWhatTakesFarLongerCountsNoMoreAfterALoss(t *testing.T) {
	var f concurrency.Limit
	f.End(f.Start(begin))
	f.Answered(begin, 200*time.Millisecond)
	g := f.Start(begin)
	f.Lost(begin, 0)
	f.End(g)
	for f.Roomy(begin) {
		f.Start(begin)
	}
	if got := wait(&f); got != 3200*time.Millisecond {
		t.Errorf("the next goes after %v, want 3.2s", got)
	}
}

// TestThoseWhoseAnswersComeLateAreSoonAsManyAsWanted: a host whose answers all take 20 s has as
// many under way, within a minute, as are asked for.
func TestThoseWhoseAnswersComeLateAreSoonAsManyAsWanted(t *testing.T) {
	const takes, every, wanted = 20 * time.Second, 100 * time.Millisecond, 200
	f, now := concurrency.Limit{}, begin
	type call struct {
		ends meter.Instant
		gen  uint32
	}
	var calls []call
	for at := begin; at < begin.Add(time.Minute); at = at.Add(every) {
		now = max(now, at)
		for len(calls) > 0 && calls[0].ends <= now {
			f.End(calls[0].gen)
			f.Answered(now, takes)
			calls = calls[1:]
		}
		for f.Opens(now) == now && len(calls) < wanted {
			calls = append(calls, call{now.Add(takes), f.Start(now)})
		}
	}
	if f.UnderWay() != wanted {
		t.Errorf("%d are under way, want %d", f.UnderWay(), wanted)
	}
}

// TestManyThatTakeLongAreWaitedForLonger: a host that never answers gets no flood.
func TestManyThatTakeLongAreWaitedForLonger(t *testing.T) {
	var f concurrency.Limit
	now, n := begin, 0
	for now < begin.Add(time.Minute) {
		if at := f.Opens(now); at > now {
			now = at
			continue
		}
		f.Start(now)
		n++
	}
	if n < 64 || n > 160 {
		t.Errorf("%d in the first minute of a host that answers nothing", n)
	}
}

// TestWhatWasNotForLoadIsTakenBack: a host that failed by chance is free again as it was.
func TestWhatWasNotForLoadIsTakenBack(t *testing.T) {
	for _, proven := range []bool{true, false} {
		var f concurrency.Limit
		if f.Answered(begin, time.Second); proven {
			f.Stated()
			f.Answered(begin, time.Second)
		}
		g := f.Start(begin)
		f.Lost(begin.Add(time.Second), 0)
		f.End(g)
		if !f.Cut() || f.Free() {
			t.Errorf("cut %t, free %t", f.Cut(), f.Free())
		}
		if f.Absolve(); f.Cut() || f.Free() != proven {
			t.Errorf("proven %t: cut %t, free %t", proven, f.Cut(), f.Free())
		}
	}
}

// TestACrowdShowsTheNumber: one that is refused because of the others shows how many the
// host serves at a time; where some were accepted long ago and none was answered, it may
// have been a rate.
func TestACrowdShowsTheNumber(t *testing.T) {
	for _, answered := range []bool{true, false} {
		var f concurrency.Limit
		if answered {
			f.Answered(begin, 50*time.Millisecond)
		}
		full(t, &f, 4)
		if f.Others() != 3 {
			t.Errorf("%d others", f.Others())
		}
		now := begin
		if !answered {
			now = now.Add(wait(&f))
		}
		f.Crowded(now.Add(time.Millisecond), now)
		if f.Allowed() != 3 || f.Tight() != answered {
			t.Errorf("answered %t: %d at a time, tight %t", answered, f.Allowed(), f.Tight())
		}
	}
}

// TestWhatIsKeptIsHadAgain: what a host was seen to bear is what the next run begins
// with, and what it was cut to is where that grows from.
func TestWhatIsKeptIsHadAgain(t *testing.T) {
	var f concurrency.Limit
	if n, grown := f.Borne(); n != 4 || grown {
		t.Errorf("of a fresh host %v, grown %t", n, grown)
	}
	for range 31 {
		f.Answered(begin, 20*time.Millisecond)
	}
	n, grown := f.Borne()
	if n != 10 || !grown {
		t.Errorf("after 31 answers %v, grown %t", n, grown)
	}
	for _, cut := range []bool{true, false} {
		var g concurrency.Limit
		g.Recall(begin, n, cut)
		if g.Allowed() != 10 || g.Cut() != cut {
			t.Errorf("%d at a time, cut %t, want 10, %t", g.Allowed(), g.Cut(), cut)
		}
		if g.Recall(begin, 1e9, false); g.Allowed() != 10 {
			t.Errorf("recalled twice: %d at a time", g.Allowed())
		}
	}
	f.Stated()
	f.Answered(begin, time.Second)
	if n, grown = f.Borne(); n != 64 || !grown {
		t.Errorf("of a host without a limit %v, grown %t", n, grown)
	}
}

// TestWhatHangsCountsNoMoreOnceLaterOnesAreAnswered: neither does a loss bring it back, nor
// is its own end one.
func TestWhatHangsCountsNoMoreOnceLaterOnesAreAnswered(t *testing.T) {
	var f concurrency.Limit
	answer := func(now meter.Instant) {
		f.End(f.Start(now.Add(-10 * time.Millisecond)))
		f.Answered(now, 10*time.Millisecond)
	}
	answer(begin)
	hangs := []uint32{f.Start(begin), f.Start(begin), f.Start(begin)}
	now := begin
	for range 50 {
		now = now.Add(100 * time.Millisecond)
		answer(now)
	}
	if f.UnderWay() != len(hangs) || f.Counted(now) != 0 {
		t.Fatalf("%d are under way, %d count", f.UnderWay(), f.Counted(now))
	}
	f.Lost(now, 0)
	if f.Counted(now) != 0 || !f.Roomy(now) {
		t.Errorf("%d count after a loss", f.Counted(now))
	}
	for range 50 { // it is forgotten
		now = now.Add(time.Second)
		answer(now)
	}
	if f.Cut() {
		t.Fatal("the loss is not forgotten")
	}
	f.Unanswered(now, hangs[0], now.Sub(begin), true)
	f.End(hangs[0])
	if f.Cut() || f.UnderWay() != 2 {
		t.Errorf("cut: %v; %d are under way", f.Cut(), f.UnderWay())
	}
	late := f.Start(now)
	now = now.Add(2 * time.Second)
	if f.Unanswered(now, late, 2*time.Second, true); !f.Cut() {
		t.Error("one that was sent after the last that was answered is no loss")
	}
	f.End(late)
	f.End(hangs[1])
	f.End(hangs[2])
	if f.UnderWay() != 0 || f.Counted(now) != 0 {
		t.Errorf("%d are under way, %d count", f.UnderWay(), f.Counted(now))
	}
}

// TestALossBeforeTheLastAnswerMakesNobodyPatient: after losses, what does not count any
// more counts again, and for longer, until a request is answered that was sent later.
func TestALossBeforeTheLastAnswerMakesNobodyPatient(t *testing.T) {
	for _, answered := range []time.Duration{-time.Millisecond, time.Millisecond} { // from its start to the loss
		var f concurrency.Limit
		f.End(f.Start(begin))
		f.Answered(begin, 10*time.Millisecond)
		f.Start(begin)
		now := begin.Add(5 * time.Second)
		f.Counted(now)
		f.Lost(now, 0)
		if f.Counted(now.Add(1500*time.Millisecond)) != 1 {
			t.Error("it counts for no longer")
		}
		f.Answered(now.Add(20*time.Millisecond), 20*time.Millisecond+answered)
		if got, want := f.Counted(now.Add(1500*time.Millisecond)), map[bool]int{true: 1}[answered > 0]; got != want {
			t.Errorf("one is answered that was sent %v before the loss: %d count, want %d", answered, got, want)
		}
	}
}
