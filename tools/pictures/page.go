package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/ratelimit"
	"github.com/seed90641741/spillway/spilladmin"
)

// The shop of the picture serves 200 requests per second: 16 at once, for 80 ms each.
const (
	shopSlots = 16
	shopTakes = 80 * time.Millisecond
	shopTime  = time.Second // that clients wait
)

// A shop is a server, its page and the requests that are in progress.
type shop struct {
	gates *ingress.Server
	slots chan struct{}
	all   sync.WaitGroup
}

// page overloads a server for a minute, and takes a picture of its page with a browser.
func page(browser string) error {
	board, err := spilladmin.New(spilladmin.Config{Name: "shop-1", Version: "v0.1.0", Caller: callerOf})
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	gates, err := ingress.New(ingress.Config{Observer: board, Trust: ingress.Trust{Boundary: ingress.Internal}})
	if err != nil {
		return err
	}
	defer func() { _ = gates.Close() }()
	board.AddServer("shop", gates)
	web := httptest.NewServer(board)
	defer web.Close()
	s := &shop{gates: gates, slots: make(chan struct{}, shopSlots)}
	defer s.all.Wait()
	end := s.offer(120, 50*time.Second, time.Now())
	taken := make(chan error, 1)
	time.AfterFunc(55*time.Second, func() { taken <- shots(browser, web.URL) })
	s.offer(800, 70*time.Second, end)
	return <-taken
}

// offer sends requests at a mean rate for some time, and returns when that ends.
func (s *shop) offer(rate float64, lasts time.Duration, begin time.Time) (end time.Time) {
	end = begin.Add(lasts)
	for at := begin; at.Before(end); at = at.Add(time.Duration(rand.ExpFloat64() * float64(time.Second) / rate)) {
		<-time.After(time.Until(at))
		s.request()
	}
	return end
}

type callerKey struct{}

func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// request sends a request of some class: one of four customers sends half of them.
func (s *shop) request() {
	r := rand.IntN(10)
	names := [...]string{"acme", "acme", "acme", "acme", "acme", "globex", "globex", "initech", "initech", "umbrella"}
	call := spillway.Call{
		Key: [...]string{"GET /cart", "GET /search", "POST /order"}[r%3], Customer: names[r],
		Criticality: spillway.Sheddable + spillway.Criticality([...]int{0, 0, 0, 1, 1, 2, 2, 2, 2, 3}[rand.IntN(10)]),
	}
	s.all.Go(func() {
		ctx, stop := context.WithTimeout(context.WithValue(context.Background(), callerKey{}, names[r]+"-gateway"), shopTime)
		defer stop()
		p, rejection := s.gates.Enter(ctx, call, ratelimit.Caller{})
		if rejection.Rejected() {
			return
		}
		select {
		case s.slots <- struct{}{}:
			<-time.After(shopTakes)
			<-s.slots
			p.Done(spillway.OutcomeServed)
		case <-ctx.Done():
			p.Done(spillway.OutcomeTimedOut)
		}
	})
}

// shots takes a picture in each theme.
func shots(browser, address string) error {
	profile, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(profile) }()
	for _, theme := range []string{"light", "dark"} {
		file := filepath.Join(directory, "page-"+theme+".png")
		c := exec.Command(browser, //nolint:gosec // the command line names it
			"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1440,1560", "--timeout=3000",
			"--user-data-dir="+profile, "--screenshot="+file, address+"/?theme="+theme)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", browser, err, out)
		}
		if err := shrink(file); err != nil {
			return err
		}
	}
	return nil
}
