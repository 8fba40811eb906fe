// Package chaintest has the tests of the whole chain: what the layers promise
// together, over stubs and over real HTTP/1.1 and HTTP/2, in the order of [weir.New]
// and in any other. The tests of one layer are in its package. Those of what the
// root package itself does, and of its cost per call, are in the root, and those of
// the README and the guides in internal/doctest.
//
// Each file has the tests of one subject. rules_test.go runs the rules of the
// RoundTripper contract, which are in contract*_test.go, for the chain and for each
// layer alone. A new rule needs a mutant in ci/mutants/contract.txt.
//
// [weir.New]: https://pkg.go.dev/github.com/weirhttp/weir#New
package chaintest
