package server

import "time"

// SetWriteTimeout has answers be written within a shorter time, so that a test need not wait for long.
func (s *Server) SetWriteTimeout(d time.Duration) { s.writing = d }

// SetCatchUp has a candidate that was told of more than there is hear so sooner.
func (s *Server) SetCatchUp(d time.Duration) { s.catchUp = d }
