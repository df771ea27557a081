// Package watch keeps live pictures of objects, and shows them until a wait is over.
package watch
