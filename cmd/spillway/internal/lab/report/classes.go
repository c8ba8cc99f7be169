package report

import "github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"

// A classRow says what happened to the calls of one criticality.
type classRow struct {
	Name          string
	Without, With cell
}

// classes returns a row for each criticality, the highest first.
func classes(r *drill.Result) []classRow {
	if r.Without == nil {
		return nil
	}
	var rows []classRow
	for i, c := range r.Without.Classes {
		rows = append(rows, classRow{c.Name, classCell(r.Without, i), classCell(r.With, i)})
	}
	return rows
}

func classCell(run *drill.Run, class int) cell {
	if run == nil || class >= len(run.Classes) {
		return cell{Value: "null", Text: none}
	}
	c := &run.Classes[class]
	return cell{
		Value: plain(float64(c.Goodput)), Text: count(float64(c.Goodput)),
		Notes: []note{noteOf("of", c.Offered, ""), noteOf("", c.Rejected(), "rejected")},
	}
}
