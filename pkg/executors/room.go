package executors

import "context"

// Room is what a pass holds of the agent's memory with what it has read of API servers. It
// holds it to its end, and others wait for it, so that whoever begins to wait for somebody
// else lets go of it first.
type Room interface {
	// Tenant is whose pass it is: a namespace.
	Tenant() string
	// LetGo gives it back: what was read is not used any more.
	LetGo()
	// Holds says whether there is any.
	Holds() bool
}

type roomKey struct{}

// WithRoom is a context whose pass holds a room.
func WithRoom(ctx context.Context, r Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// RoomOf is what the pass of a context holds.
func RoomOf(ctx context.Context) Room {
	if r, is := ctx.Value(roomKey{}).(Room); is {
		return r
	}
	return noRoom{}
}

type noRoom struct{}

func (noRoom) Tenant() string { return "" }
func (noRoom) LetGo()         {}
func (noRoom) Holds() bool    { return false }
