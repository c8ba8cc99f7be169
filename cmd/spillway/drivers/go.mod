module github.com/seed90641741/spillway/cmd/spillway/drivers

go 1.26.0

require (
	github.com/seed90641741/spillway v0.1.0
	github.com/seed90641741/spillway/cmd/spillway v0.1.0
	github.com/seed90641741/spillway/spillmongo/mongotest v0.1.0
	go.mongodb.org/mongo-driver v1.17.10
	go.mongodb.org/mongo-driver/v2 v2.9.3
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)

require (
	connectrpc.com/connect v1.21.1 // indirect
	github.com/agnivade/levenshtein v1.2.1 // indirect
	github.com/cncf/xds/go v0.0.0-20260202195803-dba9d589def2 // indirect
	github.com/envoyproxy/protoc-gen-validate v1.3.3 // indirect
	github.com/golang/snappy v0.0.4 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/montanaflynn/stats v0.7.1 // indirect
	github.com/seed90641741/spillway/spillredis v0.1.0 // indirect
	github.com/xdg-go/pbkdf2 v1.0.0 // indirect
	github.com/xdg-go/scram v1.2.0 // indirect
	github.com/xdg-go/stringprep v1.0.4 // indirect
	github.com/youmark/pkcs8 v0.0.0-20240726163527-a2c0da244d78 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261019180522-ce908d29299b // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace (
	github.com/seed90641741/spillway => ../../..
	github.com/seed90641741/spillway/cmd/spillway => ..
	github.com/seed90641741/spillway/spillmongo => ../../../spillmongo
	github.com/seed90641741/spillway/spillmongo/mongotest => ../../../spillmongo/mongotest
)

replace github.com/seed90641741/spillway/spillredis => ../../../spillredis
