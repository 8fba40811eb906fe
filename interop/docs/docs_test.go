// Package docs compiles the guides' code that needs modules beside the root's.
package docs

import (
	"testing"

	"github.com/weirhttp/weir/internal/doctest"
)

func TestGuides(t *testing.T) { doctest.Compile(t, "../..", true, "../../docs/fleets.md") }
