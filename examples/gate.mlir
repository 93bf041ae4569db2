lathe.dim @n 1 to 64
func.func @forward(%x: tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "x"})
    -> (tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "y"},
        tensor<?x8xf32, #lathe.dims<n, 8>> {lathe.name = "gate"}) {
    %0 = lathe.sigmoid %x : tensor<?x8xf32, #lathe.dims<n, 8>>
    %1 = lathe.mul %x, %0 : tensor<?x8xf32, #lathe.dims<n, 8>>, tensor<?x8xf32, #lathe.dims<n, 8>>
    %2 = lathe.mul %1, %x : tensor<?x8xf32, #lathe.dims<n, 8>>, tensor<?x8xf32, #lathe.dims<n, 8>>
    return %2, %0 : tensor<?x8xf32, #lathe.dims<n, 8>>, tensor<?x8xf32, #lathe.dims<n, 8>>
}
