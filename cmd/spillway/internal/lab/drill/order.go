package drill

// promiseOrder is how much of the goodput may go to a class while a higher one is
// rejected: what gets through before the server knows whom to reject.
const promiseOrder = 0.05

// misplaced returns the share of the goodput that went to lower classes in place
// of higher ones: at the worst line that can be drawn between two classes, the
// lesser of what was rejected above it and what was good below it. classes has the
// highest first.
func misplaced(classes []NamedCounts) float64 {
	below := 0
	for i := range classes {
		below += classes[i].Goodput
	}
	total, above, worst := max(1, below), 0, 0
	for i := range classes {
		above += classes[i].Rejected()
		below -= classes[i].Goodput
		worst = max(worst, min(above, below))
	}
	return float64(worst) / float64(total)
}

// offered returns the load of a class during the step in capacities. The capacity may have changed since the load was chosen by it.
func (r *Result) offered(class *NamedCounts) float64 {
	step := r.Settings.Phases[1]
	return float64(class.Offered) / (step.End - step.Start) / r.CapacityRPS
}

// checkHighest reports whether the highest class got what there was. There must be
// calls of it.
func (r *Result) checkHighest(highest *NamedCounts) Check {
	got := float64(highest.Goodput) / float64(highest.Offered)
	want := min(promiseGoodput, r.goodputBound()/min(1, r.Settings.Overload))
	if offered := r.offered(highest); offered > 1 {
		want /= offered
	}
	return atLeast("highest", got, want, highest.Name+" calls answered in time are %s")
}
