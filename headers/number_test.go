package headers

import (
	"math"
	"math/big"
	"testing"
	"time"
)

// This test is in the package because what is no number in a header may still be a list,
// a date or a span there, and no header's reader multiplies by all units.

// Numbers, with the marks of groups and fractions.
func TestDecimals(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "7": 7, "007": 7, "7.5": 7.5, "7.000000001": 7.000000001, "7.0000000009": 7, "1,199.46": 1199.46, "1,234,567.5": 1234567.5,
		"18446744073709551615": math.MaxUint64, "18446744073709551616": math.MaxUint64, "99999999999999999999999": math.MaxUint64,
		"": -1, ".": -1, "7.": -1, ".5": -1, "7.5.": -1, "7.x": -1, "x": -1, "7x": -1, "-7": -1, "+7": -1, "1,199": -1, "1,19.5": -1, "1,1999.5": -1,
		"1,a99.5": -1, ",199.5": -1, "1,199,46.5": -1, "1e3": -1, "/7": -1, "7/": -1, "7:": -1, "1.:": -1,
	} {
		d, ok := parseDecimal(text)
		if ok != (want >= 0) || ok && d.float() != want {
			t.Errorf("%q is %v, %t; want %v", text, d.float(), ok, want)
		}
	}
	for _, unit := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, day} {
		for _, d := range []decimal{{}, {whole: 1}, {nanos: 5e8}, {nanos: 999999999}, {whole: 3, nanos: 250e6}, {whole: 106751}, {whole: 9223372036, nanos: 854775807},
			{whole: 9223372036, nanos: 854775808}, {whole: 153722867280}, {whole: 2562047}, {whole: 2562048}, {whole: math.MaxInt64}, {whole: math.MaxUint64, nanos: 1}} {
			want := new(big.Int).Mul(new(big.Int).SetUint64(d.whole), big.NewInt(int64(unit)))
			want.Add(want, new(big.Int).Div(new(big.Int).Mul(big.NewInt(d.nanos), big.NewInt(int64(unit))), big.NewInt(1e9)))
			if !want.IsInt64() {
				want.SetInt64(math.MaxInt64)
			}
			if got := d.times(unit); int64(got) != want.Int64() {
				t.Errorf("%+v of %v is %d, want %d", d, unit, got, want)
			}
		}
	}
	for text, want := range map[string]int{"0": 0, "123456789": 123456789, "1234567890": -1, "": -1, "1x": -1, "x1": -1, "/": -1, ":": -1} {
		if got, ok := atoi(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %d, %t", text, got, ok)
		}
	}
}
