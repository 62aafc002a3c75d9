package testenv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

var errNoSession = errors.New("ZooKeeper does not know the session")

// ExpireSession ends a client's session at once, in the way in which an expiry ends it: its ephemeral nodes
// are gone when ExpireSession returns, its connection breaks, and when the client comes back it hears that the
// session has expired. A session that no node knows is an error.
//
// ZooKeeper has no request for this. It lets a client move its session to a new connection, for which the
// session's password is needed, and close it there.
func (z *ZooKeeperNodes) ExpireSession(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, zooKeeperReady, fmt.Errorf("%s passed", zooKeeperReady))
	defer cancel()
	poll := time.NewTicker(zooKeeperPoll)
	defer poll.Stop()
	moved := false
	for {
		known, err := z.closeSession(ctx, id)
		if err == nil || moved && errors.Is(err, errNoSession) { // an answer was lost
			return nil
		}
		if errors.Is(err, errNoSession) {
			return fmt.Errorf("expiring session %#x: %w", id, err)
		}
		moved = moved || known
		select { // the client may have moved the session back
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("expiring session %#x: %w", id, errors.Join(context.Cause(ctx), err))
		}
	}
}

// closeSession tries once. Known tells whether the session existed, whatever became of it.
func (z *ZooKeeperNodes) closeSession(ctx context.Context, id int64) (known bool, err error) {
	leader := z.Leader(ctx)
	if leader < 0 {
		return false, errors.New("no ZooKeeper node leads")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", z.Addr(leader))
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	// Both at once, lest the client gets in between.
	if _, err := conn.Write(append(moveRequest(id), closeRequest()...)); err != nil {
		return false, err
	}
	var moved struct {
		Protocol, Timeout int32
		Session           int64
	}
	if err := readReply(conn, &moved); err != nil {
		return false, err
	}
	if moved.Session != id {
		return false, errNoSession
	}
	var closed struct {
		Request  int32
		Revision int64
		Failure  int32
	}
	if err := readReply(conn, &closed); err != nil {
		return true, err
	}
	if closed.Failure != 0 {
		return true, fmt.Errorf("ZooKeeper answered %d", closed.Failure)
	}
	return true, nil
}

// moveRequest is ZooKeeper's ConnectRequest (zookeeper.jute) for a session that exists.
func moveRequest(id int64) []byte {
	return frame(struct {
		Protocol     int32
		LastSeen     int64
		Timeout      int32 // milliseconds
		Session      int64
		PasswordSize int32
		Password     [16]byte
		ReadOnly     bool
	}{Timeout: 10_000, Session: id, PasswordSize: 16, Password: sessionPassword(id)})
}

// closeRequest is a RequestHeader of the type closeSession.
func closeRequest() []byte {
	return frame(struct{ Request, Type int32 }{Request: 1, Type: -11})
}

// frame puts the length before a message, as ZooKeeper's protocol does.
func frame(message any) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.BigEndian, int32(binary.Size(message))) // a buffer takes all
	_ = binary.Write(&b, binary.BigEndian, message)
	return b.Bytes()
}

// readReply reads a frame into the struct that reply points to, and passes over what the frame holds beyond.
func readReply(r io.Reader, reply any) error {
	var size int32
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return fmt.Errorf("reading ZooKeeper's answer: %w", err)
	}
	rest := &io.LimitedReader{R: r, N: int64(size)}
	err := binary.Read(rest, binary.BigEndian, reply)
	if err == nil {
		_, err = io.Copy(io.Discard, rest)
	}
	if err != nil {
		return fmt.Errorf("reading ZooKeeper's answer: %w", err)
	}
	return nil
}

// sessionPassword returns the password of a session, which every ZooKeeper server derives from the session's
// id and a constant (ZooKeeperServer.superSecret): 16 bytes of the linear congruential generator that the
// documentation of java.util.Random specifies.
func sessionPassword(id int64) (password [16]byte) {
	const (
		secret     = 0xB3415C00
		multiplier = 0x5DEECE66D
		increment  = 0xB
		mask       = 1<<48 - 1
	)
	state := (uint64(id^secret) ^ multiplier) & mask
	for i := 0; i < len(password); i += 4 {
		state = (state*multiplier + increment) & mask
		binary.LittleEndian.PutUint32(password[i:], uint32(state>>16))
	}
	return password
}
