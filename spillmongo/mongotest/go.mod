module github.com/seed90641741/spillway/spillmongo/mongotest

go 1.26.0

require (
	github.com/klauspost/compress v1.20.1
	github.com/seed90641741/spillway v0.1.0
	github.com/seed90641741/spillway/spillmongo v0.1.0
	github.com/xdg-go/scram v1.2.0
	go.mongodb.org/mongo-driver/v2 v2.9.3
)

require (
	github.com/xdg-go/pbkdf2 v1.0.0 // indirect
	github.com/xdg-go/stringprep v1.0.4 // indirect
	github.com/youmark/pkcs8 v0.0.0-20240726163527-a2c0da244d78 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace (
	github.com/seed90641741/spillway => ../..
	github.com/seed90641741/spillway/spillmongo => ..
)
