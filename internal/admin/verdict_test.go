package admin

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/runbook"
)

func TestVerdict(t *testing.T) {
	ms := func(v float64) *float64 { return &v }
	for name, row := range map[string]struct {
		state           State
		never           bool
		level, headline string
		says            []string
	}{
		"nothing yet": {
			state: State{Levels: Levels{Listeners: []Listener{{Address: "127.0.0.1:8000"}, {Address: "[::1]:80"}}}}, never: true,
			level: "idle", headline: "No request yet.", says: []string{"127.0.0.1:8000 or [::1]:80"},
		},
		"nothing listens": {never: true, level: "idle", headline: "No request yet.", says: []string{"nothing listens"}},
		"no more":         {state: State{Mean: Figures{Seconds: 10}}, level: "idle", headline: "No requests.", says: []string{"last 10 s"}},
		"well": {
			state: State{Mean: Figures{Offered: 100, Goodput: 100, P99: ms(12), Deadline: ms(500)}}, level: "ok", headline: "All is well.",
			says: []string{"100/s offered, 100/s answered in time. p99 12 ms, inside the deadline of 500 ms."},
		},
		"one of few fails": {state: State{Mean: Figures{Seconds: 10, Offered: 0.3, Goodput: 0.2, Failed: 0.1}}, level: "ok", headline: "All is well.", says: []string{"0.1/s failed"}},
		"protected": {
			state: State{Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 600, Rejected: Classes{300, 100}, Ended: Classes{300, 200, 500}, P99: ms(80), Deadline: ms(500)}},
			level: "warn", headline: "Overloaded, and protected.",
			says: []string{"Rejected: 400/s, 100 % of SHEDDABLE, 50 % of SHEDDABLE_PLUS, none of CRITICAL.", "inside"},
		},
		"out of order": {
			state: State{Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 600, Rejected: Classes{100, 0, 300}, Ended: Classes{500, 0, 500}, P99: ms(80), Deadline: ms(500)}},
			level: "warn", headline: "Overloaded, and more critical requests are rejected first: routes that wait for one pool need the same key.",
			says: []string{"Rejected: 400/s, 20 % of SHEDDABLE, 60 % of CRITICAL."},
		},
		"protected and slow": {
			state: State{Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 588, Late: 12, Rejected: Classes{400}, Ended: Classes{400, 0, 600}, P99: ms(501), Deadline: ms(500)}},
			level: "warn", headline: "Overloaded, and slow.", says: []string{"p99 501 ms: 2.0 % miss their deadline, most often 500 ms."},
		},
		"slow": {
			state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 98, Late: 2, Ended: Classes{0, 0, 100}, P99: ms(501), Deadline: ms(500)}},
			level: "warn", headline: "Some answers come too late.",
		},
		"one in a hundred": {
			state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 99, Late: 1, Ended: Classes{0, 0, 100}, P99: ms(510), Deadline: ms(500)}},
			level: "ok", headline: "All is well.",
		},
		"over quota": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 600, Rejected: Classes{400}, Ended: Classes{400, 0, 600}},
				Reasons: []Reason{
					{Policy: "quota", Outcome: "rejected", Mode: "enforce", Minute: Classes{500}}, {Policy: "shed", Outcome: "rejected", Mode: "enforce", Minute: Classes{400}},
					{Policy: "shed", Outcome: "rejected", Mode: "observe", Minute: Classes{9000}}, {Policy: "retry", Outcome: "late", Mode: "enforce", Minute: Classes{9000}},
				},
			},
			level: "warn", headline: "Quotas reject requests.",
		},
		"would be over quota": {
			state: State{
				Levels: Levels{Mode: spillway.ModeObserve}, Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 1000, Would: Classes{400}, Ended: Classes{400, 0, 600}},
				Reasons: []Reason{{Policy: "ratelimit", Outcome: "rejected", Mode: "observe", Minute: Classes{500}}},
			},
			level: "warn", headline: "The rate limit would reject requests.", says: []string{"Gates that observe would reject at most 400/s."},
		},
		"observed": {
			state: State{Levels: Levels{Mode: spillway.ModeObserve}, Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 990, Would: Classes{300}, Ended: Classes{400, 0, 600}}},
			level: "warn", headline: "Overloaded, and not protected.", says: []string{"Gates that observe would reject at most 300/s, lower classes first."},
		},
		"one gate observes": {
			state: State{Levels: Levels{Mode: spillway.ModeEnforce}, Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 990, Rejected: Classes{1}, Would: Classes{300}, Ended: Classes{400, 0, 600}}},
			level: "warn", headline: "Overloaded, and not protected.", says: []string{"Gates that observe would reject at most 300/s, lower classes first."},
		},
		"late":     {state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 40, Late: 50, Failed: 10, Ended: Classes{100}}}, level: "bad", headline: "Answers come too late.", says: []string{"Lost: 50/s too late, 10/s failed."}},
		"failing":  {state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 40, Late: 10, Failed: 50, Ended: Classes{100}}}, level: "bad", headline: "The upstream fails."},
		"declined": {state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 40, RejectedUpstream: 60, Ended: Classes{100}}}, level: "bad", headline: "The upstream rejects requests.", says: []string{"60/s rejected by the upstream"}},
		"unreachable since a second, and overloaded before": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 1000, Goodput: 480, Failed: 20, Rejected: Classes{500}, Ended: Classes{1000}},
				Reasons: []Reason{{Policy: "shed", Outcome: "rejected", Mode: "enforce", Minute: Classes{500}}},
				Levels:  Levels{Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web", Endpoints: []Endpoint{{Address: "10.0.0.1:80", Down: "cannot be connected to"}}}}},
			},
			level: "bad", headline: "No endpoint of web is up: cannot be connected to.",
		},
		"a cluster that is down and has no requests": {
			state: State{
				Mean:   Figures{Seconds: 10, Offered: 100, Goodput: 100, Ended: Classes{100}},
				Levels: Levels{Clusters: []Cluster{{Name: "web", Endpoints: []Endpoint{{Address: "10.0.0.1:80", Down: "cannot be connected to"}}}}},
			},
			level: "ok", headline: "All is well.", says: []string{"All endpoints of web are down"},
		},
		"unreachable": {
			state: State{
				Mean:   Figures{Seconds: 10, Offered: 100, Failed: 100, Ended: Classes{100}},
				Levels: Levels{Clusters: []Cluster{{Name: "web", Endpoints: []Endpoint{{Address: "10.0.0.1:80", Down: "cannot be connected to"}}}}},
			},
			level: "bad", headline: "No endpoint of web is up: cannot be connected to.", says: []string{"All endpoints of web are down; 10.0.0.1:80: cannot be connected to."},
		},
		"given up": {
			state: State{Mean: Figures{Seconds: 10, Offered: 100, Goodput: 7, GoneSent: 60, GoneWaiting: 33, Ended: Classes{100}}}, level: "bad",
			headline: "Clients give up before they are answered.", says: []string{"93/s given up by clients"},
		},
		"nothing is answered": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 80, GoneSent: 2, Rejected: Classes{40, 0, 38}, Ended: Classes{40, 0, 40}},
				Levels: Levels{
					Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web", Rejected: 78}},
					Gates: []Gate{{Listener: "a", Cluster: "web", Unknown: true}, {Listener: "b", Cluster: "web", Unknown: true}},
				},
			},
			level: "bad", headline: "No request to web is answered, and the limit is unknown.",
			says: []string{"Until a request to web is answered, gates that enforce let in one at a time", "Look at the service: it hangs, or gets more requests than it can do."},
		},
		"nothing is answered, where gates observe": {
			state: State{
				Mean:   Figures{Seconds: 10, Offered: 80, GoneSent: 80, Ended: Classes{80}},
				Levels: Levels{Mode: spillway.ModeObserve, Clusters: []Cluster{{Name: "web"}}, Gates: []Gate{{Cluster: "web", Unknown: true}}},
			},
			level: "bad", headline: "No request to web is answered, and the limit is unknown.", says: []string{"gates that observe let in all"},
		},
		"nothing is answered, as the process is starved": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 80, GoneSent: 20, Rejected: Classes{60}, Ended: Classes{80}, Stalled: 0.3},
				Levels: Levels{
					Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web", Rejected: 60}}, Gates: []Gate{{Cluster: "web", Unknown: true}},
					Notices: []Notice{{Headline: "This process lacks processor time."}},
				},
			},
			level: "bad", headline: "This process lacks processor time.", says: []string{"Until a request to web is answered"},
		},
		"one of two clusters answers nothing": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 200, Goodput: 100, GoneSent: 2, Rejected: Classes{98}, Ended: Classes{200}},
				Levels: Levels{
					Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web"}, {Name: "db", Rejected: 98}},
					Gates: []Gate{{Cluster: "web"}, {Cluster: "db", Unknown: true}},
				},
			},
			level: "bad", headline: "No request to db is answered, and the limit is unknown.",
		},
		"a small cluster answers nothing beside an overload": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 1000, Goodput: 600, Rejected: Classes{390, 10}, Ended: Classes{400, 100, 500}},
				Levels: Levels{
					Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web", Rejected: 390}, {Name: "db", Rejected: 10}},
					Gates: []Gate{{Cluster: "web"}, {Cluster: "db", Unknown: true}},
				},
			},
			level: "warn", headline: "Overloaded, and protected.", says: []string{"Until a request to db is answered"},
		},
		"answers nothing, and is hardly used": {
			state: State{
				Mean: Figures{Seconds: 10, Offered: 0.3, GoneSent: 0.3, Ended: Classes{0.3}},
				Levels: Levels{
					Mode: spillway.ModeEnforce, Clusters: []Cluster{{Name: "web"}}, Gates: []Gate{{Cluster: "web", Unknown: true}},
				},
			},
			level: "warn", headline: "No request to web is answered, and the limit is unknown.", says: []string{"Until a request to web is answered"},
		},
		"given up where gates observe": {
			state: State{Levels: Levels{Mode: spillway.ModeObserve}, Mean: Figures{Seconds: 10, Offered: 100, Goodput: 7, GoneSent: 93, Ended: Classes{100}}}, level: "bad",
			headline: "Clients give up before they are answered.", says: []string{"gates that observe report fewer rejections than enforce would make"},
		},
		"a few give up beside what a limit rejects": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 100, Goodput: 27, GoneWaiting: 6, Rejected: Classes{67}, Ended: Classes{73, 0, 27}},
				Reasons: []Reason{{Policy: "ratelimit", Outcome: "rejected", Mode: "enforce", Minute: Classes{4000}}},
			},
			level: "bad", headline: "The rate limit rejects requests.", says: []string{"Lost: 6.0/s given up by clients. Rejected: 67/s"},
		},
		"a few give up beside what the shedder rejects": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 100, Goodput: 27, GoneSent: 6, Rejected: Classes{67}, Ended: Classes{73, 0, 27}},
				Reasons: []Reason{{Policy: "shed", Outcome: "rejected", Reason: "queue_full", Mode: "enforce", Minute: Classes{4000}}},
			},
			level: "bad", headline: "Overloaded, and protected in part.",
		},
		"a few give up beside what the throttle holds back": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 100, Goodput: 22, RejectedUpstream: 5, GoneSent: 6, Rejected: Classes{67}, Ended: Classes{78, 0, 22}},
				Reasons: []Reason{{Policy: "throttle", Outcome: "rejected", Reason: "throttle", Mode: "enforce", Minute: Classes{4000}}},
			},
			level: "bad", headline: "The upstream rejects requests.",
		},
		"many give up beside what a limit rejects": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 100, Goodput: 20, GoneSent: 50, Rejected: Classes{30}, Ended: Classes{80, 0, 20}},
				Reasons: []Reason{{Policy: "ratelimit", Outcome: "rejected", Mode: "enforce", Minute: Classes{1800}}},
			},
			level: "bad", headline: "Clients give up before they are answered.",
		},
		"late, and held back for it": {
			state: State{
				Mean:    Figures{Seconds: 10, Offered: 100, Late: 30, Rejected: Classes{70}, Ended: Classes{100}},
				Reasons: []Reason{{Policy: "shed", Outcome: "rejected", Reason: "deadline", Mode: "enforce", Minute: Classes{4000}}},
			},
			level: "bad", headline: "Answers come too late.",
		},
		"hanging":  {state: State{Mean: Figures{Seconds: 10, Offered: 3, InFlight: 30}}, level: "bad", headline: "Nothing is answered.", says: []string{"30 requests in flight, 3.0/s more arrived, and none has ended in the last 10 s."}},
		"draining": {state: State{Levels: Levels{Draining: true}, Mean: Figures{InFlight: 1}}, level: "warn", headline: "Draining.", says: []string{"1 request in flight"}},
	} {
		v := judge(&row.state, !row.never)
		if v.Level != row.level || v.Headline != row.headline {
			t.Errorf("%s: %s %q, want %s %q", name, v.Level, v.Headline, row.level, row.headline)
		}
		for _, text := range row.says {
			if !strings.Contains(v.Text, text) {
				t.Errorf("%s: %q does not say %q", name, v.Text, text)
			}
		}
		if _, known := runbook.Condition(v.Kind); known != (row.level == "bad" && v.Headline != "This process lacks processor time." || strings.HasPrefix(v.Headline, "Overloaded, and ") && row.level == "warn" && !strings.Contains(v.Headline, "not") || v.Headline == "Quotas reject requests." || v.Headline == "Some answers come too late." ||
			strings.HasPrefix(v.Headline, "No request to ")) {
			t.Errorf("%s: the kind is %q", name, v.Kind)
		}
		if strings.Contains(v.Text, "  ") || strings.Contains(v.Text, "NaN") {
			t.Errorf("%s: %q", name, v.Text)
		}
	}
}
