package executors

import "context"

// Reservation is what a pass holds of the agent's memory with what it has read of API servers. It
// holds it to its end, and others wait for it, so that whoever begins to wait for somebody
// else lets go of it first.
type Reservation interface {
	// Namespace is whose pass it is: a namespace.
	Namespace() string
	// Release gives it back: what was read is not used any more.
	Release()
	// Holds says whether there is any.
	Holds() bool
}

type reservationKey struct{}

// WithReservation is a context whose pass has a reservation.
func WithReservation(ctx context.Context, r Reservation) context.Context {
	return context.WithValue(ctx, reservationKey{}, r)
}

// ReservationOf is what the pass of a context holds.
func ReservationOf(ctx context.Context) Reservation {
	if r, is := ctx.Value(reservationKey{}).(Reservation); is {
		return r
	}
	return noReservation{}
}

type noReservation struct{}

func (noReservation) Namespace() string { return "" }
func (noReservation) Release()          {}
func (noReservation) Holds() bool       { return false }
