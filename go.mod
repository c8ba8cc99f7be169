module github.com/seed90641741/spillway

go 1.26.0
