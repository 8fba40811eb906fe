module github.com/weirhttp/weir/filestore

go 1.25.0

require (
	github.com/gofrs/flock v0.13.1
	github.com/weirhttp/weir v0.0.0
)

require (
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/time v0.14.0 // indirect
)

replace github.com/weirhttp/weir => ../
