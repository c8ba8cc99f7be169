// Degradation serves a search that answers cheaper while it is overloaded, before
// it rejects anybody: it leaves out the ranking first, then the snippets, and then
// all but the first match.
//
//	go run ./examples/degradation 127.0.0.1:8080
//	curl '127.0.0.1:8080/?q=overload'
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: degradation ADDRESS")
	}
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	handler, err := spillhttp.NewHandler(http.HandlerFunc(serve), spillhttp.HandlerConfig{})
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(handler.Serve(server, listener))
}

func serve(w http.ResponseWriter, r *http.Request) {
	for _, line := range search(r.Context(), r.FormValue("q")) {
		fmt.Fprintln(w, line)
	}
}

// search returns a line for each page that has the word. How much work it does for
// that depends on the level of degradation of the request.
func search(ctx context.Context, word string) (lines []string) {
	level := spillway.DegradationFrom(ctx)
	matches := find(word, level >= spillway.DegradationHigh)
	if level < spillway.DegradationLow {
		rank(matches, word)
	}
	for _, p := range matches {
		line := p.title
		if level < spillway.DegradationMedium {
			line += ": " + snippet(p, word)
		}
		lines = append(lines, line)
	}
	return lines
}

type page struct{ title, text string }

// pages is the index.
var pages = []page{
	{"Queues", "A queue that grows without a bound turns an overload into an outage."},
	{"Latency", "Latency rises before throughput falls."},
	{"Overload", "Under overload a server rejects calls. Without that, an overload never ends: retries feed the overload."},
	{"Retries", "Retries need a budget. Each retry is more load, and an overload needs less."},
}

// find returns the pages that have the word, or the first of them only.
func find(word string, first bool) (matches []page) {
	for _, p := range pages {
		if strings.Contains(strings.ToLower(p.text), word) {
			if matches = append(matches, p); first {
				break
			}
		}
	}
	return matches
}

// rank puts those pages first that have the word most often. In a real search it
// takes most of the time.
func rank(matches []page, word string) {
	slices.SortStableFunc(matches, func(a, b page) int { return cmp.Compare(count(b, word), count(a, word)) })
}

func count(p page, word string) int { return strings.Count(strings.ToLower(p.text), word) }

// snippet returns the sentence of a page that has the word.
func snippet(p page, word string) string {
	for sentence := range strings.SplitAfterSeq(p.text, ".") {
		if strings.Contains(strings.ToLower(sentence), word) {
			return strings.TrimSpace(sentence)
		}
	}
	return ""
}
