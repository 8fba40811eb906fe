// Package meter is the arithmetic of budgets: how much may go, and when. It has
// no clock, no lock and no HTTP: who calls it says what time it is.
package meter
