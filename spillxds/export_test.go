package spillxds

// InProgress returns how many requests are counted as not ended yet.
func (c *Cluster) InProgress() (n int) {
	for _, load := range *c.loads.Load() {
		n += int(load.inProgress.Load())
	}
	return n
}
