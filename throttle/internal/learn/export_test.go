package learn

// Likeliest is the likeliest limit in words, of any kind.
func (l *Learner) Likeliest() string { return l.mind.bank.of[0].String() }
