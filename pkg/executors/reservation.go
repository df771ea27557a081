package executors

import "context"

// Reservation is the agent's memory that a pass holds for what it has read of API servers. A pass
// holds it until its end while others wait for memory, so it is released before the pass waits for
// anything else.
type Reservation interface {
	// Namespace is the namespace of the pass.
	Namespace() string
	// Release releases it: what was read is not used any more.
	Release()
	// Holds says whether anything is reserved.
	Holds() bool
}

type reservationKey struct{}

// WithReservation is a context whose pass has a reservation.
func WithReservation(ctx context.Context, r Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, r)
}

// ReservationOf is the reservation of a pass's context.
func ReservationOf(ctx context.Context) Reservation {
	if r, is := ctx.Value(reservationKey{}).(Reservation); is {
		return r
	}
	return holdsNothing("")
}

// WithNamespace is the context of work that is no pass of a step: what it reads of others counts for a
// namespace, and nothing of it is reserved.
func WithNamespace(ctx context.Context, namespace string) context.Context {
	return WithReservation(ctx, holdsNothing(namespace))
}

// holdsNothing is the reservation of a namespace that never takes any.
type holdsNothing string

func (n holdsNothing) Namespace() string { return string(n) }
func (holdsNothing) Release()            {}
func (holdsNothing) Holds() bool         { return false }
