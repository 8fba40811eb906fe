module github.com/weirhttp/weir/outbox

go 1.26.0

require (
	github.com/weirhttp/weir v0.0.0
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
)

replace github.com/weirhttp/weir => ../
