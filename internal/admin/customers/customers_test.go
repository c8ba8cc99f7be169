package customers

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cost"
	"github.com/seed90641741/spillway/quota"
)

// TestTop: of many customers those are shown that use most of their bucket, and of the others those
// with most rejections; of a few customers all are.
func TestTop(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, Most, Most + 1, 2 * Most, 500} {
		var all []Customer
		for i := range n {
			all = append(all, Customer{Customer: fmt.Sprint("c", i), Full: r.Float64() / 2, Rejected: r.Uint64N(1000)})
		}
		if n == 500 {
			all[17].Full, all[18].Rejected = 1, 2000
		}
		top := Top(all)
		seen := make(map[string]bool)
		for _, c := range top {
			seen[c.Customer] = true
		}
		if len(top) != min(n, 2*Most) || len(seen) != len(top) {
			t.Errorf("%d of %d customers are shown, %d of them different", len(top), n, len(seen))
		}
		if n == 500 && (top[0].Customer != "c17" || top[Most].Customer != "c18") {
			t.Errorf("first by use %+v, first by rejections %+v", top[0], top[Most])
		}
	}
}

// TestInventedNames: a flood of names that clients make up, each of them with more rejections and a fuller bucket,
// hides no customer that the quota lists; and of the others not the one that is rejected now.
func TestInventedNames(t *testing.T) {
	all := []Customer{{Customer: "acme", Listed: true, Full: 0.7, RejectedRate: 1, Rejected: 68}, {Customer: "globex", Listed: true}, {Unlisted: true}}
	for i := range 5000 {
		all = append(all, Customer{Customer: fmt.Sprint("invented ", i), Full: 1, RejectedRate: 2, Rejected: 1000})
	}
	all = append(all, Customer{Customer: "now", Full: 0.5, RejectedRate: 30, Rejected: 300})
	shown := Top(all)
	if len(shown) != 3+2*Most || !shown[0].Unlisted || shown[1].Customer != "acme" || shown[2].Customer != "globex" {
		t.Errorf("%d customers are shown, first %+v", len(shown), shown[:3])
	}
	if c := shown[3+Most]; c.Customer != "now" {
		t.Errorf("first by rejections: %+v", c)
	}
}

// TestOf: the counts of all classes are added up, and names that clients choose are cut. A customer
// without a limit is not listed.
func TestOf(t *testing.T) {
	stats := []quota.CustomerStats{{Customer: "acme\n" + strings.Repeat("x", 500), Limit: 40, Rate: math.Inf(1), Wants: 7, Debt: 0.5, AdmittedRate: 3, RejectedRate: 2, Setting: quota.Capacity, Known: true}}
	stats[0].Classes[spillway.Sheddable.Index()] = quota.ClassStats{AdmittedTotal: 1, RejectedTotal: 2}
	stats[0].Classes[spillway.CriticalPlus.Index()] = quota.ClassStats{AdmittedTotal: 10, RejectedTotal: 20}
	got := Of("public", "shop", stats)
	if len(got) != 1 || len(got[0].Customer) > 128 || strings.Contains(got[0].Customer, "\n") || got[0].Admitted != 11 || got[0].Rejected != 22 || got[0].Limit != 0 || got[0].Wants != 7 ||
		got[0].Total != 40 || got[0].AdmittedRate != 3 || got[0].RejectedRate != 2 || got[0].Setting != "capacity" || !got[0].Listed {
		t.Errorf("%+v", got)
	}
}

func TestPage(t *testing.T) {
	costs := Costs(cost.Stats{Keys: []cost.KeyStats{{Calls: 5, Cost: 2 * time.Millisecond, StandardError: time.Millisecond}, {Key: "unused"}, {Key: "unknown", Calls: 1}, {Key: "acme", Calls: 1, StandardError: 1, Used: true}}})
	var text bytes.Buffer
	Write(&text, []Customer{{Listener: "public", Cluster: "shop", Customer: "acme", Total: 60, Limit: 30, AdmittedRate: 29.7, RejectedRate: 4.46, Full: 1, Admitted: 300, Rejected: 150},
		{Listener: "db"}, {Customer: "known", Listed: true}, {Customer: "x", Total: 10, Limit: 1.25, Setting: "unlisted_total"}, {Unlisted: true, Total: 50, Limit: 25}})
	WriteCosts(&text, true, "shop", costs)
	for _, want := range []string{"acme\tno\t", "known\tyes\t", "together)\t–\t", "60", "\t30\t", "\t4.5\t", "its limit", "300", "150", "(all others)", "\t1.3\t", "unlisted_total", "(all unlisted customers together)", "2ms", "1ms", "true"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the page does not have %q:\n%s", want, text.String())
		}
	}
	if len(costs) != 2 || strings.Contains(text.String(), "unused") || strings.Contains(text.String(), "unknown") {
		t.Errorf("%+v", costs)
	}
}
