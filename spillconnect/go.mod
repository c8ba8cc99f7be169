module github.com/seed90641741/spillway/spillconnect

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/seed90641741/spillway v0.1.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b
	google.golang.org/protobuf v1.36.12
)

replace github.com/seed90641741/spillway => ..
