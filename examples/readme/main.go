// Readme rejects reports before checkouts. It is the program of README.md.
package main

import (
	"log"
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

var classes = map[string]spillway.Criticality{"/checkout": spillway.Critical, "/report": spillway.Sheddable}

func main() {
	handler, err := spillhttp.NewHandler(http.HandlerFunc(serve), spillhttp.HandlerConfig{
		Classify: func(r *http.Request) spillway.Call {
			return spillway.Call{Criticality: classes[r.URL.Path], Key: "db"} // all wait for the same database
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(handler.Serve(&http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}, listener))
}

var database = make(chan struct{}, 8) // in place of a pool of 8 connections

func serve(http.ResponseWriter, *http.Request) {
	database <- struct{}{}
	time.Sleep(20 * time.Millisecond)
	<-database
}
