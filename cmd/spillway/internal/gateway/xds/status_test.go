package xds

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/spillxds"
)

// A step is an event, or the clusters in use from then on, and the Status after it.
type step struct {
	at       time.Duration
	event    spillxds.Event
	accepted uint64 // responses, at the event and after it
	hold     string
	leave    string
	want     Status
}

func TestHealth(t *testing.T) {
	rejected, invalid := errors.New("connection refused"), errors.New("not valid")
	for name, steps := range map[string][]step{
		"not needed": {
			{event: spillxds.Event{Kind: spillxds.Disconnected, Err: rejected}},
			{at: time.Hour},
		},
		"never reached": {
			{hold: "web", want: Status{Away: 1}},
			{at: time.Second, event: spillxds.Event{Kind: spillxds.Disconnected, Err: rejected}, want: Status{Away: time.Second, Err: rejected}},
			{at: 3 * time.Second, want: Status{Away: 3 * time.Second, Err: rejected}},
			{at: 4 * time.Second, event: spillxds.Event{Kind: spillxds.Connected}},
		},
		"away twice": {
			{hold: "web", want: Status{Away: 1}},
			{event: spillxds.Event{Kind: spillxds.Connected}},
			{at: time.Minute, event: spillxds.Event{Kind: spillxds.Disconnected, Err: rejected}, want: Status{Away: 1, Err: rejected}},
			{at: 2 * time.Minute, event: spillxds.Event{Kind: spillxds.Disconnected, Err: invalid}, want: Status{Away: time.Minute, Err: invalid}},
			{at: 3 * time.Minute, event: spillxds.Event{Kind: spillxds.Connected}},
			{at: 4 * time.Minute, event: spillxds.Event{Kind: spillxds.Disconnected, Err: rejected}, want: Status{Away: 1, Err: rejected}},
			{at: 5 * time.Minute, leave: "web"},
		},
		"not valid until a response is accepted": {
			{hold: "web", want: Status{Away: 1}},
			{event: spillxds.Event{Kind: spillxds.Connected}},
			{event: spillxds.Event{Kind: spillxds.Rejected, Err: invalid}, accepted: 7, want: Status{Rejected: invalid}},
			{event: spillxds.Event{Kind: spillxds.Updated, Cluster: "other"}, accepted: 7, want: Status{Rejected: invalid}},
			{accepted: 8},
		},
		"missing until it comes": {
			{hold: "web", want: Status{Away: 1}},
			{event: spillxds.Event{Kind: spillxds.Connected}},
			{hold: "mail"},
			{hold: "mail"},
			{event: spillxds.Event{Kind: spillxds.NotFound, Cluster: "web"}, want: Status{Missing: []string{"web"}}},
			{event: spillxds.Event{Kind: spillxds.Removed, Cluster: "mail"}, want: Status{Missing: []string{"mail", "web"}}},
			{event: spillxds.Event{Kind: spillxds.Removed, Cluster: "unused"}, want: Status{Missing: []string{"mail", "web"}}},
			{event: spillxds.Event{Kind: spillxds.Updated, Cluster: "web"}, want: Status{Missing: []string{"mail"}}},
			{leave: "mail", want: Status{Missing: []string{"mail"}}},
			{leave: "mail"},
		},
	} {
		var h health
		start := time.Unix(1e9, 0)
		connected := false
		for i, s := range steps {
			now := start.Add(s.at)
			switch {
			case s.hold != "":
				h.hold(s.hold, connected, now)
			case s.leave != "":
				h.leave(s.leave)
			case s.event.Kind != 0:
				connected = connected && s.event.Kind != spillxds.Disconnected || s.event.Kind == spillxds.Connected
				h.see(&s.event, s.accepted, now)
			}
			got := h.read(s.accepted, now)
			if got.Away != s.want.Away || !errors.Is(got.Err, s.want.Err) || !errors.Is(got.Rejected, s.want.Rejected) || !slices.Equal(got.Missing, s.want.Missing) {
				t.Errorf("%s, step %d: %+v, want %+v", name, i, got, s.want)
			}
		}
	}
}

// TestStatus: the Status follows a control plane that goes away and comes back, and forgets one that is closed.
func TestStatus(t *testing.T) {
	quiet(t)
	s := newServer(t, most(7))
	c := new(Connector)
	if got := c.Status(time.Now()); got.Away != 0 || got.Rejected != nil || len(got.Missing) > 0 {
		t.Errorf("without a control plane: %+v", got)
	}
	p, err := c.Connect(node(s), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Limits(config.ClusterXDS{Cluster: "remote"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is connected", func() bool { return c.Status(time.Now()).Away == 0 })
	s.kill()
	eventually(t, "it is away", func() bool { x := c.Status(time.Now()); return x.Away > 0 && x.Err != nil })
	if got := c.Status(time.Now().Add(time.Hour)); got.Away < time.Hour {
		t.Errorf("an hour later: %+v", got)
	}
	if err := p.Close(); err != nil {
		t.Log(err) // reports that could not be sent
	}
	if got := c.Status(time.Now()); got.Away != 0 {
		t.Errorf("closed: %+v", got)
	}
}

// TestNotice: a control plane that is away for long, or whose limits are not usable, is a notice.
func TestNotice(t *testing.T) {
	rejected, invalid := errors.New("connection refused"), errors.New("web: max_requests is not valid")
	for name, row := range map[string]struct {
		status         Status
		headline, text string // empty: no notice
	}{
		"all is well":      {},
		"starting":         {Status{Away: mostAway - 1}, "", ""},
		"away":             {Status{Away: 2 * time.Minute, Err: rejected}, "The control plane is away.", "No stream to it for 2m0s: connection refused."},
		"away, unknown":    {Status{Away: mostAway}, "The control plane is away.", "No stream to it for 15s."},
		"reconnecting":     {Status{Away: time.Second, Missing: []string{"web"}}, "The control plane does not have web.", ""},
		"not valid":        {Status{Rejected: invalid, Missing: []string{"mail"}}, "The control plane sends limits that are not valid.", invalid.Error() + ". "},
		"clusters missing": {Status{Missing: []string{"mail", "web"}}, "The control plane does not have mail, web.", "max_requests is 1024 where it never sent any"},
	} {
		headline, text, wrong := row.status.Notice()
		if wrong != (row.headline != "") || headline != row.headline || !strings.Contains(text, row.text) {
			t.Errorf("%s: %v, %q, %q", name, wrong, headline, text)
		}
	}
}
