package throttle

import (
	"cmp"
	"fmt"
)

// partLimits are limits of parts of one kind of request that are told as one, as a reader learns nothing
// from one line for each: all their pauses, or limits of one size.
type partLimits struct {
	kind   *endpoint
	parts  int
	shown  LearnedLimit // of the one that has to wait longest
	words  string       // of shown, without for whom it is
	differ bool         // words of others
}

// addPart adds x, which is for a part of k alone, to the limits of parts like it. words are those of x,
// without for whom it is.
func addPart(all []partLimits, k *endpoint, x LearnedLimit, words string) []partLimits {
	for i := range all {
		p := &all[i]
		if p.kind != k || p.shown.Kind != x.Kind || p.shown.Limit != x.Limit || p.shown.Per != x.Per {
			continue
		}
		p.parts++
		p.differ = p.differ || p.words != words
		if cmp.Or(x.Until.Compare(p.shown.Until), cmp.Compare(x.Wait, p.shown.Wait)) > 0 {
			p.shown, p.words = x, words
		}
		return all
	}
	return append(all, partLimits{kind: k, parts: 1, shown: x, words: words})
}

// limit is p as it is shown.
func (p *partLimits) limit() LearnedLimit {
	x := p.shown
	if p.parts == 1 {
		return x
	}
	name, part := p.kind.key.String(), "part"
	if p.kind.divided() {
		part = p.kind.paths.parts.Found().Way.String()
	}
	switch {
	case x.Kind == LearnedPause:
		x.Why = fmt.Sprintf("%s, for the last of %d %ss of %s that are paused", p.words, p.parts, part, name)
		return x
	case p.differ && x.Per > 0:
		p.words = fmt.Sprintf("looks like %.4g per %s, found by its refusals", x.Limit, x.Per)
	case p.differ:
		p.words = fmt.Sprintf("looks like %.4g at a time, %s", x.Limit, x.Source)
	}
	x.Why = fmt.Sprintf("%s, for each of %d %ss of %s", p.words, p.parts, part, name)
	return x
}

// part is the kind of request of which c binds one part, and nothing else; nil: it binds other requests.
func (c cause) part() *endpoint {
	kinds := c.kinds()
	if c.what == causeFlight {
		if _, own := c.atOnce(); own {
			kinds = []*endpoint{c.endpoint}
		}
	}
	if len(kinds) != 1 || !kinds[0].isPart() {
		return nil
	}
	return kinds[0].kind()
}
