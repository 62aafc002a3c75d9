package server

import "time"

// SetWriteTimeout has answers be written within a shorter time, so that a test need not wait for long.
func (s *Server) SetWriteTimeout(d time.Duration) { s.writing = d }
