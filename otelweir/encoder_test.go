package otelweir

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// encoder writes attributes as name=value, joined by commas.
type encoder struct{}

var encoderID = attribute.NewEncoderID()

func (encoder) ID() attribute.EncoderID { return encoderID }

func (encoder) Encode(i attribute.Iterator) string {
	var parts []string
	for i.Next() {
		kv := i.Attribute()
		parts = append(parts, string(kv.Key)+"="+kv.Value.String())
	}
	return strings.Join(parts, ",")
}
