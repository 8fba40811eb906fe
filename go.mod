module github.com/weirhttp/weir

go 1.25.0

require (
	github.com/cenkalti/backoff/v4 v4.3.0
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/sony/gobreaker/v2 v2.4.0
	golang.org/x/time v0.14.0
	pgregory.net/rapid v1.3.0
)

require github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
