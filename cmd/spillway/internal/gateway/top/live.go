package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/top/query"
)

// Command has the flags of "spillway top".
type Command struct {
	Addresses []string      `arg:"" optional:"" name:"address" help:"Admin addresses of processes: HOST[:PORT], http://HOST:PORT/PREFIX, https://... or unix:PATH (default 127.0.0.1:8001)."`
	Discover  []string      `placeholder:"NAME[:PORT]" help:"Also show all processes at the addresses of a DNS name, such as a headless service of Kubernetes; SRV records for a name that begins with an underscore. The name is looked up every 10s."`
	TokenFile string        `placeholder:"FILE" help:"File with the token for reading: admin.read_token_file of the processes."`
	CAFile    string        `name:"ca-file" placeholder:"FILE" help:"Certificates in PEM that verify those of the processes (default those of this host)."`
	Output    string        `enum:"text,json" default:"text" placeholder:"FORMAT" help:"Output format: text, or json with one object on a line for each page (default ${default})."`
	Interval  time.Duration `placeholder:"DURATION" help:"Time between pages (default 1s; 5s for a single page of text)."`
	Window    time.Duration `default:"10s" placeholder:"DURATION" help:"Time that all rates are over, as far back as the command has looked (default ${default})."`
	Timeout   time.Duration `default:"2s" placeholder:"DURATION" help:"Timeout for the answer of a process (default ${default})."`
	Count     int           `placeholder:"N" help:"End after N pages (default: one page of text where the output is no terminal, else no end)."`

	asked Config // by Validate
}

// Help returns more help of the command.
func (Command) Help() string {
	return "Shows many proxies, services of quotas and programs that use the library on one page: is it overloaded, who is rejected, why, and what to do; " +
		"the rates of all processes, the worst first; reasons, customers, callers and routes. " +
		"On a terminal the page is drawn again in place; q ends it.\n\n" +
		"Exit status: 0 if a process answered, 1 if none did, 2 for wrong usage, 130 if interrupted before --count pages."
}

// defaultAdmin is the default address for operators.
const defaultAdmin = "127.0.0.1:8001"

// Bounds of the flags of time.
const (
	leastInterval, mostInterval = 100 * time.Millisecond, 10 * time.Minute
	onceInterval                = 5 * time.Second
)

// Validate checks the flags, and reads the files that they name. The parser calls it.
func (c *Command) Validate() (err error) {
	c.asked, err = c.fleet()
	return err
}

// Run shows pages until it has shown enough, or ctx ends. It returns whether a process answered, and whether it was
// interrupted before Count pages.
func (c *Command) Run(ctx context.Context, w io.Writer) (answered, interrupted bool, err error) {
	defer c.asked.Client.Close()
	fleet := New(c.asked)
	defer fleet.Close()
	show, ctx, end := c.shower(ctx, w)
	defer end()
	page, err := c.run(ctx, fleet, show)
	return page != nil && page.Answering > 0, c.Count > 0 && ctx.Err() != nil, err
}

// fleet returns what the flags say about processes.
func (c *Command) fleet() (x Config, err error) {
	if len(c.Addresses) == 0 && len(c.Discover) == 0 {
		c.Addresses = []string{defaultAdmin}
	}
	x.Window = c.Window
	for _, address := range c.Addresses {
		t, err := query.Parse(address)
		if err != nil {
			return x, err
		}
		x.Targets = append(x.Targets, t)
	}
	for _, name := range c.Discover {
		l, err := query.ParseLookup(name, net.DefaultResolver)
		if err != nil {
			return x, fmt.Errorf("--discover: %w", err)
		}
		x.Lookups = append(x.Lookups, l)
	}
	if err := c.times(); err != nil {
		return x, err
	}
	x.Client, err = query.New(query.Config{TokenFile: c.TokenFile, CAFile: c.CAFile, Timeout: c.Timeout})
	return x, err
}

// times checks the flags that have numbers.
func (c *Command) times() error {
	for _, flag := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"interval", cmp.Or(c.Interval, time.Second), leastInterval, mostInterval},
		{"window", c.Window, time.Second, time.Hour},
		{"timeout", c.Timeout, leastInterval, time.Minute},
	} {
		if flag.value < flag.least || flag.value > flag.most {
			return fmt.Errorf("--%s is %v, must be %v to %v", flag.name, flag.value, flag.least, flag.most)
		}
	}
	if c.Count < 0 {
		return fmt.Errorf("--count is %d, must be 0 or more", c.Count)
	}
	return nil
}

// A shower shows pages.
type shower struct {
	page  func(*Page) error
	hurry bool // it shows what is known after each interval; others wait for all answers
}

// round asks all processes once.
func (s *shower) round(ctx context.Context, fleet *Fleet, interval time.Duration) {
	if s.hurry {
		limited, cancel := context.WithTimeout(ctx, interval)
		defer cancel()
		ctx = limited
	}
	fleet.Round(ctx)
}

// shower returns what shows pages, the context that ends with the key q, and what restores the terminal. It
// sets the flags that depend on where the pages go.
func (c *Command) shower(ctx context.Context, w io.Writer) (shower, context.Context, func()) {
	plain := func(p *Page) error { return p.Write(w, Screen{Width: plainWidth}) }
	if c.Output == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		plain = func(p *Page) error { return e.Encode(p) }
	} else if out, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		if t, quit := openTerminal(ctx, os.Stdin, out); t != nil {
			c.Interval = cmp.Or(c.Interval, time.Second)
			return shower{func(p *Page) error { return draw(t, p) }, true}, quit, t.Close
		}
	}
	if c.Output == "text" && c.Count == 0 {
		c.Count = 1
	}
	if c.Output == "text" && c.Count == 1 {
		c.Interval = cmp.Or(c.Interval, onceInterval)
	}
	c.Interval = cmp.Or(c.Interval, time.Second)
	return shower{plain, false}, ctx, func() {}
}

// plainWidth is the width of a page where the output is no terminal.
const plainWidth = 120

// draw shows a page on a terminal.
func draw(t *terminal, p *Page) error {
	var b strings.Builder
	columns, lines := t.Size()
	_, noColor := os.LookupEnv("NO_COLOR")
	if err := p.Write(&b, Screen{Width: columns, Height: lines, Color: !noColor}); err != nil {
		return err
	}
	return t.Show(b.String())
}

// firstPage is how long the first page waits for rates of all processes: they read their counts once per second.
const firstPage = 3 * time.Second

// run asks and shows, and returns the last page.
func (c *Command) run(ctx context.Context, fleet *Fleet, show shower) (page *Page, err error) {
	ticks, began := time.NewTicker(c.Interval), time.Now()
	defer ticks.Stop()
	for shown := 0; ; {
		show.round(ctx, fleet, c.Interval)
		if ctx.Err() != nil {
			return page, nil
		}
		page = fleet.Page(time.Now())
		if ready := page.Measured == page.Answering || time.Since(began) >= firstPage; ready || shown > 0 || show.hurry {
			if err := show.page(page); err != nil {
				return page, fmt.Errorf("writing the page: %w", err)
			}
			shown++
		}
		if c.Count > 0 && shown >= c.Count {
			return page, nil
		}
		select {
		case <-ctx.Done():
			return page, nil
		case <-ticks.C:
		}
	}
}
