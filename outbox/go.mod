module github.com/weirhttp/weir/outbox

go 1.25.0

require (
	github.com/weirhttp/weir v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace github.com/weirhttp/weir => ../
