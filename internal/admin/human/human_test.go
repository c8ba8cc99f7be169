package human

import "testing"

func TestWords(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{Grouped(0), "0"}, {Grouped(999), "999"}, {Grouped(1000), "1,000"}, {Grouped(1234567.6), "1,234,568"}, {Grouped(-1000), "-1,000"},
		{PerSecond(0), "0/s"}, {PerSecond(0.01), "0.1/s"}, {PerSecond(9.94), "9.9/s"}, {PerSecond(9.96), "10/s"}, {PerSecond(1234), "1,234/s"},
		{Percent(0), "0 %"}, {Percent(0.0001), "<0.1 %"}, {Percent(0.0123), "1.2 %"}, {Percent(0.9999), "99 %"}, {Percent(1), "100 %"}, {Percent(2.5), "250 %"},
		{Duration(0.5), "500 µs"}, {Duration(1.25), "1.2 ms"}, {Duration(87.4), "87 ms"}, {Duration(999.6), "1.00 s"}, {Duration(3370), "3.37 s"},
		{Listed(nil), ""}, {Listed([]string{"a"}), "a"}, {Listed([]string{"a", "b", "c"}), "a, b or c"},
		{Counted(1, "request"), "1 request"}, {Counted(2000, "request"), "2,000 requests"},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}
