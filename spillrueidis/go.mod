module github.com/seed90641741/spillway/spillrueidis

go 1.26.0

require github.com/redis/rueidis v1.0.79

require github.com/seed90641741/spillway v0.1.0

require golang.org/x/sys v0.49.0 // indirect

replace github.com/seed90641741/spillway => ..
