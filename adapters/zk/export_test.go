package zk

// Deafen has no event of a path reach those who watch it now.
func (c *Client) Deafen(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, path)
}
