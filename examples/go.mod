module github.com/weirhttp/weir/examples

go 1.26.0

require (
	github.com/redis/go-redis/v9 v9.23.0
	github.com/vbauerster/mpb/v8 v8.9.3
	github.com/weirhttp/weir v0.0.0
	go.yaml.in/yaml/v3 v3.0.6
	golang.org/x/term v0.47.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
)

require (
	github.com/VividCortex/ewma v1.2.0 // indirect
	github.com/acarl005/stripansi v0.0.0-20180116102854-5a71ef0e047d // indirect
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mattn/go-runewidth v0.0.16 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	github.com/weirhttp/weir/outbox v0.0.0
	github.com/weirhttp/weir/redisstore v0.0.0
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace github.com/weirhttp/weir => ../

replace github.com/weirhttp/weir/redisstore => ../redisstore

replace github.com/weirhttp/weir/outbox => ../outbox
